"""Stripe events: the inbox of the webhook."""

from django.db import models
from django.db.models import Q


class StripeEvent(models.Model):
    """
    One delivered event, kept as the bytes that were signed.

    Received means stored, not done: the row is marked processed in the same
    transaction that applies it, and a failure is stored outside of it.
    """

    class Status(models.TextChoices):
        """How far its processing is."""

        RECEIVED = "received"
        PROCESSED = "processed"
        FAILED = "failed"

    class Outcome(models.TextChoices):
        """The outcome of a processed one."""

        APPLIED = "applied"
        # Others may use the same Stripe account.
        NOT_OURS = "not-ours"
        NOTHING = "nothing", "nothing to do"
        # It cannot be applied, and a member of staff has said that it need not be.
        DISMISSED = "dismissed"

    stripe_event_id = models.CharField(max_length=255, unique=True)
    type = models.CharField(max_length=80)
    api_version = models.CharField(max_length=40, blank=True, default="")
    # The id of the object the event is about; the object itself is read afresh.
    object_id = models.CharField(max_length=255)
    raw_body = models.BinaryField()
    # When it happened, by Stripe's clock. Nothing is decided by it: events come in any order.
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
