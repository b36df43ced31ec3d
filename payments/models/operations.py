"""Billing operations: what we ask Stripe to do, stored before we ask."""

import uuid

from django.conf import settings
from django.db import models
from django.db.models import Q


class BillingOperation(models.Model):
    """
    One change at Stripe; its id is the idempotency key of the request.

    A process that dies on the way leaves it pending; whoever comes next asks
    again with the same key, gets the same answer, and finishes it. A user has at
    most one pending operation.
    """

    class Kind(models.TextChoices):
        """What is asked for."""

        CREATE_CUSTOMER = "create-customer"
        CREATE_SUBSCRIPTION = "create-subscription"
        UPDATE_SUBSCRIPTION = "update-subscription"
        CANCEL_SUBSCRIPTION = "cancel-subscription"

    class Status(models.TextChoices):
        """Whether Stripe's answer has been applied."""

        PENDING = "pending"
        DONE = "done"
        REFUSED = "refused"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="billing_operations")
    kind = models.CharField(max_length=24, choices=Kind)
    # Exactly what is asked for; a repeat with other parameters is another operation.
    parameters = models.JSONField()
    status = models.CharField(max_length=8, choices=Status, default=Status.PENDING)
    # The id of what Stripe made or changed, or the code of its refusal.
    outcome = models.CharField(max_length=255, blank=True, default="")
    attempts = models.PositiveIntegerField(default=0)
    created_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["user"], condition=Q(status="pending"), name="billingoperation_one_pending_per_user"
            ),
        ]
        indexes = [
            models.Index(
                fields=["created_at"], condition=Q(status="pending"), name="billingoperation_pending"
            )
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.pk}"
