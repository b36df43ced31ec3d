"""Commands to Stripe, and Stripe's events."""

import uuid

from django.conf import settings
from django.db import models
from django.db.models import Q


class BillingOperation(models.Model):
    """A command to Stripe (`services.operations`). Its id is the idempotency key. A user has at most one pending."""

    class Kind(models.TextChoices):
        CREATE_CUSTOMER = "create-customer"
        CREATE_SUBSCRIPTION = "create-subscription"
        UPDATE_SUBSCRIPTION = "update-subscription"
        CANCEL_SUBSCRIPTION = "cancel-subscription"

    class Status(models.TextChoices):
        PENDING = "pending"
        DONE = "done"
        REFUSED = "refused"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="billing_operations")
    kind = models.CharField(max_length=24, choices=Kind)
    # The arguments of the client's method, exactly as sent. Other arguments make another operation.
    parameters = models.JSONField()
    status = models.CharField(max_length=8, choices=Status, default=Status.PENDING)
    # The id of the object that Stripe created or changed, or Stripe's error code.
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
        return f"{self.get_kind_display().lower()} {self.pk}"


class StripeEvent(models.Model):
    """One delivered event, stored as the signed bytes; `services.events` applies it."""

    class Status(models.TextChoices):
        RECEIVED = "received"
        PROCESSED = "processed"
        FAILED = "failed"

    class Outcome(models.TextChoices):
        APPLIED = "applied"
        # The event belongs to another system that uses the same Stripe account.
        NOT_OURS = "not-ours"
        NOTHING = "nothing", "nothing to do"
        # The event could not be applied, and staff have dismissed it.
        DISMISSED = "dismissed"

    stripe_event_id = models.CharField(max_length=255, unique=True)
    type = models.CharField(max_length=80)
    api_version = models.CharField(max_length=40, blank=True, default="")
    # The id of the event's object. The service reads the object from Stripe again when it applies the event.
    object_id = models.CharField(max_length=255)
    raw_body = models.BinaryField()
    # When the event happened, by Stripe's clock. No decision depends on it, because events arrive in any order.
    happened_at = models.DateTimeField(null=True)
    status = models.CharField(max_length=10, choices=Status, default=Status.RECEIVED)
    outcome = models.CharField(max_length=9, choices=Outcome, blank=True, default="")
    attempts = models.PositiveIntegerField(default=0)
    last_error = models.TextField(blank=True, default="")
    received_at = models.DateTimeField()
    next_attempt_at = models.DateTimeField()
    processed_at = models.DateTimeField(null=True)

    class Meta:
        permissions = [
            ("process_stripeevent", "Can have an event processed again"),
            ("dismiss_stripeevent", "Can dismiss an event that cannot be applied"),
        ]
        constraints = [
            models.CheckConstraint(
                condition=Q(status="processed", processed_at__isnull=False)
                | (~Q(status="processed") & Q(processed_at__isnull=True)),
                name="stripeevent_processed_has_time",
            )
        ]
        indexes = [
            models.Index(
                fields=["next_attempt_at"],
                condition=Q(status__in=["received", "failed"]),
                name="stripeevent_due",
            ),
            models.Index(fields=["object_id"], name="stripeevent_object"),
        ]

    def __str__(self) -> str:
        return f"{self.type} {self.stripe_event_id}"
