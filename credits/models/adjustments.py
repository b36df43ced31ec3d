"""Corrections that staff ask for: who asked, why, and who else agreed where it takes two."""

from typing import Any, ClassVar

import pgtrigger
from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from credits.models.entries import CreditEntry
from gateway.common.fields import SAFE_INTEGER_MAX

LARGEST_ADJUSTMENT = SAFE_INTEGER_MAX


class AdjustmentDecision(models.TextChoices):
    """A request is decided once."""

    PENDING = "PENDING", "Pending: waits for a second person"
    APPROVED = "APPROVED", "Approved: posted"
    REJECTED = "REJECTED", "Rejected: nothing was posted"


def _staff(help_text: str, **options: Any) -> Any:
    return models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+", help_text=help_text, **options
    )


class AdjustmentRequest(models.Model):
    """
    A signed number of credits that a member of staff wants to move, and what became of it.

    What was asked never changes. A small one is approved as it is asked, without a second person.
    """

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="adjustments")
    credits = models.BigIntegerField(help_text="Credits; negative to take away.")
    reason = models.TextField()
    key = models.CharField(
        max_length=255, unique=True, help_text="Names the request; the same key asks once."
    )
    needs_second_person = models.BooleanField(help_text="It was above what one person may do.")
    requested_by = _staff("Who asked.")
    decided_by = _staff("Who approved or rejected it; empty where nobody else was needed.", null=True)
    decision = models.CharField(max_length=10, choices=AdjustmentDecision, default=AdjustmentDecision.PENDING)
    entry = models.OneToOneField(
        CreditEntry, null=True, on_delete=models.PROTECT, related_name="adjustment_request"
    )
    created_at = models.DateTimeField(db_default=Now())
    decided_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "credits_adjustment"
        ordering = ("-id",)
        permissions = [("decide_adjustment", "Can approve or reject an adjustment of somebody else")]
        indexes = [
            models.Index(fields=["id"], condition=Q(decision="PENDING"), name="credits_adjustment_pending"),
        ]
        constraints = [
            models.CheckConstraint(
                condition=~Q(credits=0) & Q(credits__range=(-LARGEST_ADJUSTMENT, LARGEST_ADJUSTMENT)),
                name="credits_adjustment_credits_in_range",
            ),
            models.CheckConstraint(condition=~Q(reason=""), name="credits_adjustment_has_reason"),
            models.CheckConstraint(
                condition=Q(decision="PENDING", decided_by=None, entry=None, decided_at=None)
                | Q(decision="APPROVED", entry__isnull=False, decided_at__isnull=False)
                & (Q(needs_second_person=False) | Q(decided_by__isnull=False))
                | Q(decision="REJECTED", entry=None, decided_by__isnull=False, decided_at__isnull=False),
                name="credits_adjustment_decision_fits_columns",
            ),
            models.CheckConstraint(
                condition=Q(decided_by=None) | ~Q(decided_by=F("requested_by")),
                name="credits_adjustment_second_person",
                violation_error_message="A second person decides.",
            ),
        ]
        triggers: ClassVar[list[pgtrigger.Trigger]] = [
            pgtrigger.Protect(name="never_deleted", operation=pgtrigger.Delete),
            pgtrigger.Protect(
                name="decided_once",
                operation=pgtrigger.Update,
                condition=~pgtrigger.Q(old__decision="PENDING"),
            ),
            pgtrigger.Protect(
                name="asked_for_good",
                operation=pgtrigger.Update,
                condition=pgtrigger.AnyChange(
                    "user", "credits", "reason", "key", "needs_second_person", "requested_by", "created_at"
                ),
            ),
        ]

    def __str__(self) -> str:
        return f"adjustment {self.pk}: {self.credits:+d} {self.decision.lower()}"
