"""A check-in and its draw: one append-only row per attempt."""

from typing import Any, ClassVar

import pgtrigger
from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from checkin.models.drops import DropTable
from checkin.models.seeds import DailySeed


def _table() -> Any:
    return models.ForeignKey(DropTable, on_delete=models.PROTECT, related_name="+", db_index=False)


class CheckIn(models.Model):
    """
    What was drawn, and everything that is needed to draw it again.

    A drop is stored as `{"type", "value", "minutes"}`, its value as decimal text.
    """

    # The unique (user, day, attempt) serves every search by user.
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="check_ins", db_index=False
    )
    day = models.DateField(help_text="UTC.")
    attempt = models.PositiveSmallIntegerField(help_text="Counts the user's check-ins of the day from 1.")
    seed = models.ForeignKey(DailySeed, on_delete=models.PROTECT, related_name="check_ins")
    permanent_table = _table()
    subscriber_table = models.ForeignKey(
        DropTable,
        null=True,
        blank=True,
        on_delete=models.PROTECT,
        related_name="+",
        db_index=False,
        help_text="Empty for a user who was not subscribed.",
    )
    experience_only = models.BooleanField(help_text="The user had not paid or earned yet.")
    possible_results = models.JSONField()
    result_place = models.PositiveSmallIntegerField(help_text="Which of the possible results, from 0.")
    idempotency_key = models.CharField(max_length=128, default="", blank=True)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        verbose_name = "check-in"
        constraints = [
            models.UniqueConstraint(fields=["user", "day", "attempt"], name="checkin_checkin_attempt"),
            models.UniqueConstraint(
                fields=["user", "idempotency_key"],
                condition=~Q(idempotency_key=""),
                name="checkin_checkin_key",
            ),
            models.CheckConstraint(condition=Q(attempt__gte=1), name="checkin_checkin_attempt_from_1"),
        ]
        triggers: ClassVar[list[pgtrigger.Trigger]] = [
            pgtrigger.Protect(name="append_only", operation=pgtrigger.Update | pgtrigger.Delete)
        ]

    def __str__(self) -> str:
        return f"check-in {self.pk}: {self.day}, attempt {self.attempt}"

    @property
    def result(self) -> dict[str, Any]:
        """Return the awarded drop."""
        drop: dict[str, Any] = self.possible_results[self.result_place]
        return drop

    @property
    def effect_key(self) -> str:
        """Return the key under which the drop took effect: of an experience entry, a credit entry or a modifier."""
        return f"check-in:{self.pk}"
