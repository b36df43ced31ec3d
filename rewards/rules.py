"""
The rules of rewards, as pure functions.

Nothing here reads the database or the clock; callers pass rows and `now`. A user has the
benefits of the permanent badge, of the subscriber badge while the allowance runs, and of
the active modifiers. Fractions and attempts add up; of two debt limits, the larger applies.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Decimal
from fractions import Fraction
from itertools import pairwise
from math import floor

from credits.models import EntrySource
from rewards.models import (
    CREDIT_PARTS,
    LARGEST_EXPERIENCE,
    MAX_MODIFIER_SUM,
    Badge,
    Modifier,
    ModifierType,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Benefits:
    """A user's current benefits. Bonuses are fractions by modifier type; the badges' debt limit is in credits."""

    badge_bonuses: dict[ModifierType, Decimal]
    modifier_bonuses: dict[ModifierType, Decimal]
    check_in_attempts: int
    badge_debt: int

    @property
    def cashback_fraction(self) -> Decimal:
        """Return the cashback fraction of a relay transaction's cost, at most 1."""
        back = ModifierType.BONUS_CREDITS_BACK
        return cashback_fraction(badges=[self.badge_bonuses[back]], modifiers=[self.modifier_bonuses[back]])

    def bonus(self, raised: ModifierType) -> Decimal:
        """Return the total bonus of badges and modifiers."""
        return self.badge_bonuses[raised] + self.modifier_bonuses[raised]


MODIFIER_TYPE_BY_SOURCE = {
    EntrySource.PUSH_ADS: ModifierType.BONUS_PUSH_ADS_CREDITS,
    EntrySource.VIDEO_ADS: ModifierType.BONUS_VIDEO_ADS_CREDITS,
    EntrySource.OFFERWALL: ModifierType.BONUS_OFFERWALL_CREDITS,
    EntrySource.SURVEYS: ModifierType.BONUS_SURVEYS_CREDITS,
}


def benefits_of(*, badges: Iterable[Badge], modifiers: Iterable[Modifier]) -> Benefits:
    """Return the benefits of the current badges and active modifiers."""
    current = list(badges)
    return Benefits(
        badge_bonuses={
            raised: sum((_badge_fraction(badge, raised) for badge in current), Decimal(0))
            for raised in ModifierType
        },
        modifier_bonuses=_capped_sums(modifiers),
        check_in_attempts=1 + sum(badge.bonus_daily_check_in_attempts for badge in current),
        badge_debt=max((badge.acceptable_credit_debt for badge in current), default=0),
    )


def _badge_fraction(badge: Badge, raised: ModifierType) -> Decimal:
    return {
        ModifierType.BONUS_PUSH_ADS_CREDITS: badge.bonus_creds_push_ads,
        ModifierType.BONUS_VIDEO_ADS_CREDITS: badge.bonus_creds_video_ads,
        ModifierType.BONUS_OFFERWALL_CREDITS: badge.bonus_creds_offerwall,
        ModifierType.BONUS_SURVEYS_CREDITS: badge.bonus_creds_surveys,
        ModifierType.BONUS_CREDITS_BACK: badge.credits_back_percent,
    }[raised]


def _capped_sums(modifiers: Iterable[Modifier]) -> dict[ModifierType, Decimal]:
    sums = dict.fromkeys(ModifierType, Decimal(0))
    for modifier, counted in counted_fractions(modifiers):
        sums[ModifierType(modifier.modifier_type)] += counted
    return sums


def counted_fractions(modifiers: Iterable[Modifier]) -> Iterator[tuple[Modifier, Decimal]]:
    """Yield each modifier with the fraction that it adds, which is its own until its type reaches the cap."""
    left = dict.fromkeys(ModifierType, MAX_MODIFIER_SUM)
    for modifier in modifiers:
        raised = ModifierType(modifier.modifier_type)
        counted = min(modifier.value, left[raised])
        left[raised] -= counted
        yield modifier, counted


def earned_credits(*, amount: Decimal, rate: Decimal, bonus: Decimal) -> int:
    """Return an earning in whole credits: floor(amount × rate × (1 + bonus))."""
    return floor(Fraction(amount) * Fraction(rate) * (1 + Fraction(bonus)))


def badge_at(levels: Iterable[Badge], experience: int) -> Badge | None:
    """Return the level of a track at that experience, as `rewards_badge_at` does; None for a track without levels."""
    for level in levels:
        upper = level.exp_upper_bound
        if level.exp_lower_bound <= experience and (upper is None or experience < upper):
            return level
    return None


def grown(*, base: int, rate: Decimal) -> int:
    """Return the experience of an activity: floor(base × the badge's growth rate)."""
    return floor(base * Fraction(rate))


def cashback_fraction(*, badges: Iterable[Decimal], modifiers: Iterable[Decimal]) -> Decimal:
    """Return the cashback fraction of a relay transaction's cost: the sum of these fractions, at most 1."""
    modified = min(MAX_MODIFIER_SUM, sum(modifiers, Decimal(0)))
    return min(Decimal(1), sum(badges, Decimal(0)) + modified)


def cashback_parts(*, cost: int, fraction: Decimal) -> int:
    """Return the exact cashback of a cost, in parts of a credit; a fraction has four decimals."""
    parts = cost * Fraction(fraction) * CREDIT_PARTS
    if parts.denominator != 1:
        raise ValueError("a cashback fraction has at most four decimals")
    return parts.numerator


def progress_within(*, badge: Badge, experience: int) -> Decimal:
    """Return the completed fraction of the badge's range, 0 to 1, and 1 at the top badge."""
    if badge.exp_upper_bound is None:
        return Decimal(1)
    span = badge.exp_upper_bound - badge.exp_lower_bound
    part = Decimal(experience - badge.exp_lower_bound) / span
    return max(Decimal(0), min(Decimal(1), part)).quantize(Decimal("0.0001"), rounding=ROUND_FLOOR)


def level_faults(badges: Iterable[Badge]) -> Iterator[str]:
    """Yield a sentence for each gap, overlap or missing bound of these levels."""
    levels = sorted(badges, key=lambda level: level.exp_lower_bound)
    if not levels:
        yield "A track needs at least one badge."
        return
    bottom, top = levels[0], levels[-1]
    if bottom.exp_lower_bound != 0:
        yield f"The lowest badge, {bottom.name}, begins at {bottom.exp_lower_bound} instead of 0."
    for below, above in pairwise(levels):
        yield from _faults_between(below, above)
    if top.exp_upper_bound is not None:
        yield f"The top badge is missing: {top.name} ends at {top.exp_upper_bound}."
    if top.exp_lower_bound >= LARGEST_EXPERIENCE:
        yield f"{top.name} begins at {LARGEST_EXPERIENCE} or above, which JSON cannot represent."


def _faults_between(below: Badge, above: Badge) -> Iterator[str]:
    begins, ends = above.exp_lower_bound, below.exp_upper_bound
    if below.exp_lower_bound == begins or ends is None or ends > begins:
        yield f"{below.name} and {above.name} overlap at {begins}."
    elif ends < begins:
        yield f"There is a gap from {ends} to {begins}, between {below.name} and {above.name}."
