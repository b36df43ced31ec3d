"""
Drop tables with their items, daily seeds, and check-ins with their draws.

A drop table is a draft until it is published, which needs approval. A published table never changes, because anyone can
recompute draws from it; the database refuses changes.
"""

from decimal import Decimal
from typing import Any, ClassVar

import pgtrigger
from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Floor, Now

from gateway.common.fields import staff_reference
from gateway.common.models import APPEND_ONLY
from rewards.models import Badge

LARGEST_WEIGHT = 1_000_000
LARGEST_FRACTION = Decimal(1)
LONGEST_MINUTES = 30 * 24 * 60
# Streaks are counted up to this number of days.
LONGEST_STREAK = 365

_MORE_THAN_ITS_BADGE_IS_GONE = """
OLD.published_at IS NOT NULL
AND (NEW.badge_id IS NOT NULL OR to_jsonb(NEW) - 'badge_id' IS DISTINCT FROM to_jsonb(OLD) - 'badge_id')
"""

# The share lock serialises publishing and writes of items.
_REFUSE_ITEMS_OF_PUBLISHED = """
PERFORM FROM checkin_droptable WHERE id IN (OLD.table_id, NEW.table_id) FOR SHARE;
IF EXISTS (
    SELECT FROM checkin_droptable WHERE id IN (OLD.table_id, NEW.table_id) AND published_at IS NOT NULL
) THEN
    RAISE EXCEPTION 'the items of a published drop table never change'
        USING ERRCODE = 'restrict_violation', CONSTRAINT = 'checkin_dropitem_published';
END IF;
RETURN coalesce(NEW, OLD);
"""


class DropType(models.TextChoices):
    """The types of drops: amounts that take effect at once, and bonuses for some minutes."""

    EXPERIENCE = "EXPERIENCE"
    CREDITS = "CREDITS"
    BONUS_PUSH_ADS_CREDITS = "BONUS_PUSH_ADS_CREDITS"
    BONUS_VIDEO_ADS_CREDITS = "BONUS_VIDEO_ADS_CREDITS"
    BONUS_OFFERWALL_CREDITS = "BONUS_OFFERWALL_CREDITS"
    BONUS_SURVEYS_CREDITS = "BONUS_SURVEYS_CREDITS"
    BONUS_CREDITS_BACK = "BONUS_CREDITS_BACK"


# Whole numbers that take effect at once; every other type is a fraction for some minutes.
AMOUNTS = ["CREDITS", "EXPERIENCE"]


class DropTable(models.Model):
    """The drops of a badge's users; the last published table is in force. A table outlives its badge."""

    badge = models.ForeignKey(Badge, models.SET_NULL, null=True, related_name="drop_tables", db_index=False)
    version = models.PositiveIntegerField(help_text="Version of the badge's table, from 1.")
    author = staff_reference("The author, who alone may change the draft. Empty for the first tables.")
    created_at = models.DateTimeField(db_default=Now())
    published_at = models.DateTimeField(null=True, blank=True, help_text="Empty while it is a draft.")
    published_by = staff_reference("Who asked for it; the request says who approved.")

    class Meta:
        permissions = [
            ("publish_droptable", "Can ask that a drop table is published"),
            ("decide_droptable", "Can decide whether a drop table is published"),
        ]
        indexes = [
            models.Index(fields=["badge", "-published_at", "-id"], name="checkin_droptable_in_force"),
        ]
        constraints = [
            models.UniqueConstraint(fields=["badge", "version"], name="checkin_droptable_version"),
            models.CheckConstraint(
                condition=Q(published_by=None) | Q(published_at__isnull=False),
                name="checkin_droptable_publisher_of_published",
            ),
        ]
        triggers: ClassVar[list[pgtrigger.Trigger]] = [
            pgtrigger.Protect(
                name="published_stays",
                operation=pgtrigger.Delete,
                condition=pgtrigger.Q(old__published_at__isnull=False),
            ),
            pgtrigger.Protect(
                name="published_never_changes",
                operation=pgtrigger.Update,
                condition=pgtrigger.Condition(_MORE_THAN_ITS_BADGE_IS_GONE),
            ),
        ]

    def __str__(self) -> str:
        return f"drop table {self.pk}: {self.badge or 'no badge'}, version {self.version}"


class DropItem(models.Model):
    """One kind of drop: its weight, values, and duration."""

    table = models.ForeignKey(DropTable, on_delete=models.CASCADE, related_name="items")
    drop_type = models.CharField(max_length=32, choices=DropType)
    weight = models.PositiveIntegerField(help_text="Likelihood against the weights of the other items.")
    value_min = models.DecimalField(
        max_digits=13, decimal_places=4, help_text="Whole experience or credits; of a bonus 0.05 is 5 %."
    )
    value_max = models.DecimalField(max_digits=13, decimal_places=4)
    minutes = models.PositiveIntegerField(
        null=True, blank=True, help_text="How long a bonus lasts; empty for experience and credits."
    )
    streak_days = models.PositiveSmallIntegerField(
        default=0,
        db_default=0,
        help_text="It can drop from this many days in a row with a check-in, that of the draw included; 0 for always.",
    )

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(drop_type__in=DropType.values), name="checkin_dropitem_type_known"
            ),
            models.CheckConstraint(
                condition=Q(weight__range=(1, LARGEST_WEIGHT)),
                name="checkin_dropitem_weight_in_range",
                violation_error_message="A weight is between 1 and 1,000,000.",
            ),
            models.CheckConstraint(
                condition=Q(value_min__gt=0, value_max__gte=F("value_min")),
                name="checkin_dropitem_values_in_order",
                violation_error_message="The least value is above 0 and not above the largest.",
            ),
            models.CheckConstraint(
                condition=~Q(drop_type__in=AMOUNTS)
                | Q(value_min=Floor("value_min"), value_max=Floor("value_max"), minutes=None),
                name="checkin_dropitem_amounts_are_whole",
                violation_error_message="Experience and credits are whole and have no minutes.",
            ),
            models.CheckConstraint(
                condition=Q(drop_type__in=AMOUNTS)
                | Q(
                    minutes__isnull=False,
                    minutes__range=(1, LONGEST_MINUTES),
                    value_max__lte=LARGEST_FRACTION,
                ),
                name="checkin_dropitem_bonuses_are_bounded",
                violation_error_message="A bonus is a fraction up to 1 and lasts 1 minute to 30 days.",
            ),
            models.CheckConstraint(
                condition=Q(streak_days__range=(0, LONGEST_STREAK)),
                name="checkin_dropitem_streak_in_range",
                violation_error_message="A streak has 0 to 365 days.",
            ),
        ]
        triggers: ClassVar[list[pgtrigger.Trigger]] = [
            pgtrigger.Trigger(
                name="published_stays",
                when=pgtrigger.Before,
                operation=pgtrigger.Insert | pgtrigger.Update | pgtrigger.Delete,
                func=_REFUSE_ITEMS_OF_PUBLISHED,
            )
        ]

    def __str__(self) -> str:
        return f"{self.get_drop_type_display()} {self.value_min.normalize():f}–{self.value_max.normalize():f}"


class DailySeed(models.Model):
    """The seed of a UTC day's draws; `checkin.services.seeds` keeps it secret until it is revealed."""

    day = models.DateField(unique=True)
    salt = models.BinaryField(max_length=32)
    # The SHA-256 of the seed, public from the start.
    commitment = models.CharField(max_length=64)
    created_at = models.DateTimeField(db_default=Now())
    revealed_at = models.DateTimeField(null=True, blank=True)
    revealed_seed = models.CharField(
        max_length=64, default="", blank=True, help_text="In hex; empty until it is revealed."
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


def _table(**options: Any) -> Any:
    return models.ForeignKey(DropTable, models.PROTECT, related_name="+", db_index=False, **options)


class CheckIn(models.Model):
    """A draw, with everything needed to recompute it."""

    # No index of its own: that of the unique constraint (user, day, attempt) also serves searches by user.
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="check_ins", db_index=False
    )
    day = models.DateField(help_text="UTC.")
    attempt = models.PositiveSmallIntegerField(
        help_text="Number of the check-in among the user's of that day, from 1."
    )
    seed = models.ForeignKey(DailySeed, on_delete=models.PROTECT, related_name="check_ins")
    permanent_table = _table()
    subscriber_table = _table(null=True, blank=True, help_text="Empty for a user who was not subscribed.")
    experience_only = models.BooleanField(help_text="The user had not paid or earned yet.")
    streak = models.PositiveSmallIntegerField(
        null=True,
        help_text="Days in a row with a check-in, up to this one. Empty if no item needed a streak.",
    )
    # A list of `{"type", "value", "minutes"}`, with the value as decimal text.
    possible_results = models.JSONField()
    result_place = models.PositiveSmallIntegerField(
        help_text="Index of the awarded drop among the possible results, from 0."
    )
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
        triggers: ClassVar[list[pgtrigger.Trigger]] = [APPEND_ONLY]

    def __str__(self) -> str:
        return f"check-in {self.pk}: {self.day}, attempt {self.attempt}"

    @property
    def result(self) -> dict[str, Any]:
        drop: dict[str, Any] = self.possible_results[self.result_place]
        return drop

    @property
    def effect_key(self) -> str:
        """Return the key of the drop's effect: an experience entry, a credit entry or a modifier."""
        return f"check-in:{self.pk}"
