"""Clawbacks: credits taken back because the money went back."""

from django.db import models
from django.db.models import Q


class Clawback(models.Model):
    """
    One step of a payout's clawback: `credits` taken back, negative where a reinstatement gives them again.

    The steps of a payout add up to floor(paid out × money gone / money collected)
    at any time; `key` counts them.
    """

    payout = models.ForeignKey("payments.Payout", models.PROTECT, related_name="clawbacks")
    key = models.CharField(max_length=300, unique=True)
    credits = models.BigIntegerField()
    entry = models.OneToOneField("credits.CreditEntry", models.PROTECT, null=True, related_name="clawback")
    created_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(credits=0, entry__isnull=True) | (~Q(credits=0) & Q(entry__isnull=False)),
                name="clawback_entry_when_moved",
            )
        ]

    def __str__(self) -> str:
        return self.key
