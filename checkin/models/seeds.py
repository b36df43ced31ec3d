"""The secret of a day, promised before the day begins and revealed after it is over."""

from typing import ClassVar

import pgtrigger
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now


class DailySeed(models.Model):
    """
    What all draws of a UTC day are computed from.

    The seed itself is in no column until it is revealed: `salt` and a secret of the
    processes make it (`checkin.services.seeds`), so that a reader of the database
    cannot foresee a draw. `commitment`, its SHA-256, is public from the start.
    """

    day = models.DateField(unique=True)
    salt = models.BinaryField(max_length=32)
    commitment = models.CharField(max_length=64)
    created_at = models.DateTimeField(db_default=Now())
    revealed_at = models.DateTimeField(null=True, blank=True)
    revealed_seed = models.CharField(
        max_length=64, default="", blank=True, help_text="Hex; empty until then."
    )

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(revealed_at=None, revealed_seed="")
                | Q(revealed_at__isnull=False) & ~Q(revealed_seed=""),
                name="checkin_dailyseed_revealed_whole",
            ),
        ]
        triggers: ClassVar[list[pgtrigger.Trigger]] = [
            pgtrigger.ReadOnly(name="promise_stands", fields=["day", "salt", "commitment"]),
            pgtrigger.Protect(name="never_deleted", operation=pgtrigger.Delete),
            pgtrigger.Protect(
                name="revealed_once",
                operation=pgtrigger.Update,
                condition=pgtrigger.Q(old__revealed_at__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return f"seed of {self.day}"
