"""
Transfers of paid credits from a person to a sponsor.

The rows of a person's transfers change only under the lock of the person's credit account.
"""

from django.conf import settings
from django.db import models
from django.db.models import F, Q


class Transfer(models.Model):
    """Paid credits that a member transfers to a sponsor, at once or after approval by staff."""

    class Status(models.TextChoices):
        WAITING = "waiting", "Waits for approval"
        MOVED = "moved", "Moved"
        REFUSED = "refused", "Refused"
        WITHDRAWN = "withdrawn", "Withdrawn by the person"

    # No indexes of their own: the indexes below begin with the user and the sponsor.
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+", db_index=False)
    sponsor = models.ForeignKey("sponsors.Sponsor", models.PROTECT, related_name="transfers", db_index=False)
    # Chosen by the caller. Emptied when the person's account is deleted.
    idempotency_key = models.CharField(max_length=128, blank=True, editable=False)
    credits = models.BigIntegerField()
    status = models.CharField(max_length=9, choices=Status)
    created_at = models.DateTimeField()
    ended_at = models.DateTimeField(
        null=True, help_text="When the credits moved, or the transfer ended otherwise."
    )

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["user", "idempotency_key"],
                condition=~Q(idempotency_key=""),
                name="sponsors_transfer_key_once",
            ),
            models.UniqueConstraint(
                fields=["user", "sponsor"],
                condition=Q(status="waiting"),
                name="sponsors_transfer_one_waiting",
            ),
            models.CheckConstraint(condition=Q(credits__gte=1), name="sponsors_transfer_positive"),
            models.CheckConstraint(
                condition=Q(status="waiting", ended_at=None) | (~Q(status="waiting") & ~Q(ended_at=None)),
                name="sponsors_transfer_ended_has_time",
            ),
        ]
        indexes = [
            models.Index(fields=["user", "ended_at"], name="sponsors_transfer_of_user"),
            models.Index(fields=["sponsor", "ended_at"], name="sponsors_transfer_of_sponsor"),
        ]

    def __str__(self) -> str:
        return f"{self.credits:,} credits to {self.sponsor}"


class TransferredLot(models.Model):
    """
    Credits of one payment that a transfer has moved, by a pair of entries.

    `lot` is the payment's entry; `in_entry` opened the sponsor's lot. `clawed_back` credits were taken from the sponsor
    since, with returned money.
    """

    transfer = models.ForeignKey(Transfer, models.PROTECT, related_name="lots", db_index=False)
    lot = models.ForeignKey("credits.CreditEntry", models.PROTECT, related_name="transferred")
    out_entry = models.OneToOneField("credits.CreditEntry", models.PROTECT, related_name="+")
    in_entry = models.OneToOneField("credits.CreditEntry", models.PROTECT, related_name="transferred_lot")
    credits = models.BigIntegerField()
    clawed_back = models.BigIntegerField(default=0)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["transfer", "lot"], name="sponsors_transferredlot_once"),
            models.CheckConstraint(
                condition=Q(credits__gte=1, clawed_back__gte=0, clawed_back__lte=F("credits")),
                name="sponsors_transferredlot_clawed_back",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.credits:,} credits of entry {self.lot_id}"
