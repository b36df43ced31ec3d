"""
Badges, each a range of experience on a track, and the users' experience, cashback and modifiers.

The database prevents overlaps and gaps between ranges: by an exclusion constraint per track, and a check of the
whole track at commit. `functions.sql` finds the badge of an experience.
"""

from decimal import Decimal
from pathlib import Path
from typing import Any, ClassVar

import pgtrigger
from django.conf import settings
from django.contrib.postgres.constraints import ExclusionConstraint
from django.contrib.postgres.fields import BigIntegerRangeField, RangeBoundary, RangeOperators
from django.db import models
from django.db.models import F, Func, Q
from django.db.models.functions import Now

from gateway.common import sql_functions
from gateway.common.fields import SAFE_INTEGER_MAX, staff_reference
from gateway.common.models import APPEND_ONLY

FUNCTIONS = sql_functions.register(Path(__file__).parent)
LARGEST_BONUS = Decimal(10)
# The most that all modifiers of a type add together.
MAX_MODIFIER_SUM = Decimal(1)
LARGEST_EXPERIENCE = SAFE_INTEGER_MAX
# Cashback is counted in ten-thousandths of a credit, because cashback fractions have four decimals.
CREDIT_PARTS = 10_000


class BadgeTrack(models.TextChoices):
    """The track of a badge: all activity, or paid months."""

    PERMANENT = "PERMANENT"
    SUBSCRIBER = "SUBSCRIBER"


def _no_overlap(track: BadgeTrack) -> ExclusionConstraint:
    # One per track: a constraint over (track, range) would need the extension btree_gist.
    bounds = Func(
        "exp_lower_bound",
        "exp_upper_bound",
        RangeBoundary(),
        function="int8range",
        output_field=BigIntegerRangeField(),
    )
    return ExclusionConstraint(
        name=f"rewards_badge_{track.lower()}_no_overlap",
        expressions=[(bounds, RangeOperators.OVERLAPS)],
        condition=Q(track=track),
        deferrable=models.Deferrable.DEFERRED,
        violation_error_message="The range overlaps another badge of the track.",
    )


def _fraction(help_text: str, **options: Any) -> "models.DecimalField[Decimal, Decimal]":
    return models.DecimalField(
        max_digits=7, decimal_places=4, default=Decimal(0), help_text=help_text, **options
    )


_PLACE = ("id", "track", "name", "exp_lower_bound", "exp_upper_bound")
BONUSES = ("bonus_creds_push_ads", "bonus_creds_video_ads", "bonus_creds_offerwall", "bonus_creds_surveys")

_REFUSE_INVALID_LEVELS = """
IF EXISTS (
    SELECT FROM (
        SELECT exp_lower_bound, exp_upper_bound,
               lag(exp_upper_bound, 1, 0::bigint) OVER levels AS starts_at,
               lead(exp_lower_bound) OVER levels AS next_starts_at
        FROM rewards_badge WHERE track = coalesce(NEW.track, OLD.track)
        WINDOW levels AS (ORDER BY exp_lower_bound)
    ) AS level
    WHERE exp_lower_bound IS DISTINCT FROM starts_at OR exp_upper_bound IS DISTINCT FROM next_starts_at
) THEN
    RAISE EXCEPTION 'the levels of % start at 0, have no gap and no top', coalesce(NEW.track, OLD.track)
        USING ERRCODE = 'check_violation', CONSTRAINT = 'rewards_badge_levels';
END IF;
RETURN NULL;
"""


class Badge(models.Model):
    """A level of a track and its benefits. Its fractions are added to those of the other badge and the modifiers."""

    track = models.CharField(max_length=16, choices=BadgeTrack)
    name = models.CharField(max_length=64)
    exp_lower_bound = models.BigIntegerField(help_text="Experience from which a user has the badge.")
    exp_upper_bound = models.BigIntegerField(
        null=True,
        blank=True,
        help_text="Experience from which a user has the next badge; empty for the top badge.",
    )
    exp_growth_rate = models.DecimalField(
        max_digits=7, decimal_places=4, default=Decimal(1), help_text="Multiplies experience gained."
    )
    bonus_creds_push_ads = _fraction("0.05 is 5 % more credits for push ads.")
    bonus_creds_video_ads = _fraction("0.05 is 5 % more credits for videos.")
    bonus_creds_offerwall = _fraction("0.05 is 5 % more credits for offers.")
    bonus_creds_surveys = _fraction("0.05 is 5 % more credits for surveys.")
    bonus_daily_check_in_attempts = models.PositiveSmallIntegerField(default=0)
    credits_back_percent = _fraction("0.05 gives 5 % of what a relay transaction cost back.")
    acceptable_credit_debt = models.BigIntegerField(default=0, help_text="The debt limit in credits.")

    class Meta:
        db_table = "rewards_badge"
        permissions = [("decide_badge", "Can decide other people's requests about badges")]
        ordering = ("track", "exp_lower_bound")
        constraints = [
            models.CheckConstraint(
                condition=Q(track__in=BadgeTrack.values), name="rewards_badge_track_known"
            ),
            models.CheckConstraint(
                condition=Q(exp_lower_bound__gte=0)
                & (Q(exp_upper_bound=None) | Q(exp_upper_bound__gt=F("exp_lower_bound"))),
                name="rewards_badge_range_not_empty",
                violation_error_message="A badge ends above where it begins.",
            ),
            models.CheckConstraint(
                condition=Q(exp_upper_bound=None) | Q(exp_upper_bound__lt=LARGEST_EXPERIENCE),
                name="rewards_badge_range_fits_json",
            ),
            models.CheckConstraint(
                condition=Q(**{f"{name}__range": (0, LARGEST_BONUS) for name in BONUSES}),
                name="rewards_badge_bonuses_in_range",
                violation_error_message="A bonus is a fraction from 0 to 10.",
            ),
            models.CheckConstraint(
                condition=Q(credits_back_percent__range=(0, 1)),
                name="rewards_badge_credits_back_in_range",
                violation_error_message="Nobody gets more back than was paid.",
            ),
            models.CheckConstraint(
                condition=Q(exp_growth_rate__gt=0, exp_growth_rate__lte=10),
                name="rewards_badge_growth_in_range",
                violation_error_message="The growth rate is above 0 and at most 10.",
            ),
            models.CheckConstraint(
                condition=Q(acceptable_credit_debt__gte=0), name="rewards_badge_debt_not_negative"
            ),
            *(_no_overlap(track) for track in BadgeTrack),
        ]
        triggers: ClassVar[list[pgtrigger.Trigger]] = [
            pgtrigger.Trigger(
                name="levels",
                when=pgtrigger.After,
                operation=pgtrigger.Insert | pgtrigger.Update | pgtrigger.Delete,
                timing=pgtrigger.Deferred,
                func=_REFUSE_INVALID_LEVELS,
            )
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.get_track_display().lower()})"


# A badge's benefits: every field but its place on the track.
TERMS = tuple(field.name for field in Badge._meta.local_fields if field.name not in _PLACE)
FRACTIONS = (*BONUSES, "credits_back_percent")


class Progress(models.Model):
    """Running totals of a user's experience on each track, and of cashback below one credit."""

    user = models.OneToOneField(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="progress")
    permanent_experience = models.BigIntegerField(
        default=0, db_default=0, help_text="The sum of the permanent track."
    )
    subscriber_experience = models.BigIntegerField(
        default=0, db_default=0, help_text="The sum of the subscriber track."
    )
    cashback_remainder = models.SmallIntegerField(
        default=0, db_default=0, help_text="Cashback below one credit, in ten-thousandths of a credit."
    )

    class Meta:
        db_table = "rewards_progress"
        verbose_name_plural = "progress"
        constraints = [
            models.CheckConstraint(
                condition=Q(permanent_experience__gte=0, subscriber_experience__gte=0),
                name="rewards_progress_not_negative",
            ),
            models.CheckConstraint(
                condition=Q(cashback_remainder__range=(0, CREDIT_PARTS - 1)),
                name="rewards_progress_remainder_is_no_credit",
            ),
        ]

    def __str__(self) -> str:
        return f"progress {self.pk}"


class ExperienceEntry(models.Model):
    """A change of a user's experience on one track, posted once and never altered."""

    progress = models.ForeignKey(Progress, on_delete=models.PROTECT, related_name="entries", db_index=False)
    track = models.CharField(max_length=16, choices=BadgeTrack)
    base = models.BigIntegerField(
        help_text="Experience before the growth rate is applied; negative if taken back."
    )
    # `base` times the growth rate of the badge at that total; a reversal takes back at most the total.
    amount = models.BigIntegerField(help_text="Experience posted.")
    total_after = models.BigIntegerField()
    key = models.CharField(max_length=255, help_text="Idempotency key, which names the cause.")
    cause = models.CharField(max_length=64)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "rewards_experience"
        verbose_name_plural = "experience entries"
        indexes = [models.Index(fields=["progress", "id"], name="rewards_experience_progress")]
        constraints = [
            models.UniqueConstraint(fields=["key"], name="rewards_experience_key"),
            models.CheckConstraint(condition=~Q(base=0), name="rewards_experience_base_not_zero"),
            models.CheckConstraint(condition=Q(total_after__gte=0), name="rewards_experience_not_negative"),
            models.CheckConstraint(
                condition=Q(track__in=BadgeTrack.values), name="rewards_experience_track_known"
            ),
        ]
        triggers: ClassVar[list[pgtrigger.Trigger]] = [APPEND_ONLY]

    def __str__(self) -> str:
        return f"experience {self.pk}: {self.amount:+d} {self.get_track_display().lower()}"


class CashbackEntry(models.Model):
    """
    The exact cashback of one charge, or its reversal; posted once and never altered.

    Credits are whole; the remainder is carried to the next entry. A user's amounts add up to the
    credits of all entries plus the remainder of the last.
    """

    progress = models.ForeignKey(Progress, on_delete=models.PROTECT, related_name="cashback", db_index=False)
    amount = models.BigIntegerField(help_text="In ten-thousandths of a credit; negative if taken back.")
    credits = models.BigIntegerField(help_text="Whole credits posted to the account with the same key, or 0.")
    remainder_after = models.SmallIntegerField(help_text="In ten-thousandths of a credit.")
    key = models.CharField(max_length=255, help_text="Idempotency key, which names the cause.")
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "rewards_cashback"
        verbose_name_plural = "cashback entries"
        indexes = [models.Index(fields=["progress", "id"], name="rewards_cashback_progress")]
        constraints = [
            models.UniqueConstraint(fields=["key"], name="rewards_cashback_key"),
            models.CheckConstraint(condition=~Q(amount=0), name="rewards_cashback_not_zero"),
            models.CheckConstraint(
                condition=Q(remainder_after__range=(0, CREDIT_PARTS - 1)),
                name="rewards_cashback_remainder_is_no_credit",
            ),
        ]
        triggers: ClassVar[list[pgtrigger.Trigger]] = [APPEND_ONLY]

    def __str__(self) -> str:
        return f"cashback {self.pk}: {self.credits:+d}"


class ModifierType(models.TextChoices):
    BONUS_PUSH_ADS_CREDITS = "BONUS_PUSH_ADS_CREDITS"
    BONUS_VIDEO_ADS_CREDITS = "BONUS_VIDEO_ADS_CREDITS"
    BONUS_OFFERWALL_CREDITS = "BONUS_OFFERWALL_CREDITS"
    BONUS_SURVEYS_CREDITS = "BONUS_SURVEYS_CREDITS"
    BONUS_CREDITS_BACK = "BONUS_CREDITS_BACK"


class ModifierQuerySet(models.QuerySet["Modifier"]):
    def active(self) -> "ModifierQuerySet":
        """Keep modifiers that are active by the database's clock: `created_at <= now < expires_at`."""
        return self.filter(created_at__lte=Now(), expires_at__gt=Now())


class Modifier(models.Model):
    """A fraction that is added to the badges' bonus while `created_at <= now < expires_at`."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="modifiers", db_index=False
    )
    modifier_type = models.CharField(max_length=32, choices=ModifierType)
    value = models.DecimalField(max_digits=7, decimal_places=4, help_text="0.05 is 5 % more.")
    key = models.CharField(max_length=255, unique=True, help_text="Idempotency key, which names the cause.")
    reason = models.TextField(blank=True, default="")
    actor = staff_reference("The member of staff who gave it.")
    created_at = models.DateTimeField(db_default=Now())
    expires_at = models.DateTimeField()

    objects = ModifierQuerySet.as_manager()

    class Meta:
        db_table = "rewards_modifier"
        permissions = [("decide_modifier", "Can decide other people's requests for modifiers")]
        indexes = [
            models.Index(fields=["user", "expires_at"], name="rewards_modifier_user"),
            models.Index(fields=["expires_at"], name="rewards_modifier_expires"),
        ]
        constraints = [
            models.CheckConstraint(
                condition=Q(modifier_type__in=ModifierType.values), name="rewards_modifier_type_known"
            ),
            models.CheckConstraint(
                condition=Q(value__gt=0, value__lte=Decimal(10)), name="rewards_modifier_value_in_range"
            ),
            models.CheckConstraint(
                condition=Q(expires_at__gt=F("created_at")), name="rewards_modifier_expires_after_creation"
            ),
        ]

    def __str__(self) -> str:
        return f"modifier {self.pk}: {self.get_modifier_type_display()} +{(100 * self.bonus).normalize():f} %"

    @property
    def bonus(self) -> Decimal:
        """Return the fraction that the modifier adds if no other one of its type is active."""
        return min(self.value, MAX_MODIFIER_SUM)
