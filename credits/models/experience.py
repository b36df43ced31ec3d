"""Why a user's experience is what it is: one append-only row per change."""

from typing import ClassVar

import pgtrigger
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from credits.models.accounts import CreditAccount
from credits.models.badges import BadgeTrack


class ExperienceEntry(models.Model):
    """
    A change of a user's experience on one track, posted once and never altered.

    `base` is what the cause is worth, `amount` what was posted: times the growth rate
    of the badge worn then, or, where experience is taken back, no more than there was.
    """

    account = models.ForeignKey(
        CreditAccount, on_delete=models.PROTECT, related_name="experience_entries", db_index=False
    )
    track = models.CharField(max_length=16, choices=BadgeTrack)
    base = models.BigIntegerField(help_text="Experience before the growth rate; negative where taken back.")
    amount = models.BigIntegerField(help_text="Experience posted.")
    total_after = models.BigIntegerField()
    key = models.CharField(max_length=255, unique=True, help_text="Names the cause; the same key posts once.")
    cause = models.CharField(max_length=64)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "credits_experience"
        verbose_name_plural = "experience entries"
        indexes = [models.Index(fields=["account", "id"], name="credits_experience_account")]
        constraints = [
            models.CheckConstraint(condition=~Q(base=0), name="credits_experience_base_not_zero"),
            models.CheckConstraint(condition=Q(total_after__gte=0), name="credits_experience_not_negative"),
            models.CheckConstraint(
                condition=Q(track__in=BadgeTrack.values), name="credits_experience_track_known"
            ),
        ]
        triggers: ClassVar[list[pgtrigger.Trigger]] = [
            pgtrigger.Protect(name="append_only", operation=pgtrigger.Update | pgtrigger.Delete)
        ]

    def __str__(self) -> str:
        return f"experience {self.pk}: {self.amount:+d} {self.track}"
