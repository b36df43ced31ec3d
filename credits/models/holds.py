"""Credits set aside for something that is not settled yet."""

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from credits.models.accounts import CreditAccount
from credits.models.entries import CreditEntry


class HoldStatus(models.TextChoices):
    """A hold is open once and closed once."""

    HELD = "HELD"
    CAPTURED = "CAPTURED"
    RELEASED = "RELEASED"


class CreditHold(models.Model):
    """Credits that nothing else may spend until they are captured by an entry, or released."""

    # Only open holds are ever looked up by account; a partial index below serves that.
    account = models.ForeignKey(CreditAccount, on_delete=models.PROTECT, related_name="holds", db_index=False)
    key = models.CharField(max_length=255, unique=True, help_text="Names the cause; the same key holds once.")
    content = models.CharField(
        max_length=255, blank=True, default="", help_text="Fingerprint of what is paid for."
    )
    amount = models.BigIntegerField(help_text="Credits set aside.")
    status = models.CharField(max_length=16, choices=HoldStatus, default=HoldStatus.HELD)
    captured_amount = models.BigIntegerField(null=True, help_text="Credits charged; may exceed the amount.")
    entry = models.OneToOneField(CreditEntry, null=True, on_delete=models.PROTECT, related_name="hold")
    created_at = models.DateTimeField(db_default=Now())
    closed_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "credits_hold"
        constraints = [
            models.CheckConstraint(condition=Q(amount__gt=0), name="credits_hold_amount_positive"),
            models.CheckConstraint(
                condition=Q(status=HoldStatus.HELD, captured_amount=None, entry=None, closed_at=None)
                | Q(
                    status=HoldStatus.CAPTURED,
                    # Both: a CHECK lets unknown pass, and null > 0 is unknown.
                    captured_amount__isnull=False,
                    captured_amount__gt=0,
                    entry__isnull=False,
                    closed_at__isnull=False,
                )
                | Q(status=HoldStatus.RELEASED, captured_amount=None, entry=None, closed_at__isnull=False),
                name="credits_hold_status_fits_columns",
            ),
        ]
        indexes = [
            models.Index(fields=["account"], condition=Q(status=HoldStatus.HELD), name="credits_hold_open"),
        ]

    def __str__(self) -> str:
        return f"hold {self.pk}: {self.amount} {self.status}"
