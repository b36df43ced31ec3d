"""When a paid period counts, and the effect of badges and modifiers: without a database."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from math import floor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from credits.queries import PaidPeriod
from rewards.models import CREDIT_PARTS, Badge, Modifier, ModifierType
from rewards.rules import benefits_of, cashback_parts, earned_credits, level_faults, progress_within

_END = datetime(2032, 3, 1, tzinfo=UTC)
_HOUR = timedelta(hours=1)


def _period(*, renews: bool) -> PaidPeriod:
    return PaidPeriod(
        credits=1,
        starts_at=_END - timedelta(days=29),
        ends_at=_END,
        resets_at=_END + timedelta(days=31),
        renews=renews,
    )


@pytest.mark.parametrize(
    ("since_end", "renews", "runs"),
    [
        (timedelta(days=-29, seconds=-1), True, False),
        (timedelta(days=-29), False, True),
        (timedelta(seconds=-1), False, True),
        (timedelta(0), False, False),
        (timedelta(0), True, True),
        (72 * _HOUR - timedelta(microseconds=1), True, True),
        (72 * _HOUR, True, False),
    ],
)
def test_a_period_runs_from_its_start_to_its_end_and_72_hours_on_where_it_renews(
    since_end: timedelta, renews: bool, runs: bool
) -> None:
    assert _period(renews=renews).runs_at(_END + since_end) is runs


def test_credits_are_reset_at_the_end_of_the_providers_period() -> None:
    period = _period(renews=True)
    assert period.reset_after(_END - _HOUR) == _END
    assert period.reset_after(_END) == _END + timedelta(days=31)


_FRACTIONS = st.decimals(min_value=0, max_value=10, places=4)


@given(
    amount=st.decimals(min_value=0, max_value=10**9, places=6),
    rate=st.decimals(min_value=0, max_value=10**6, places=6),
    bonus=_FRACTIONS,
)
def test_an_earning_is_rounded_down_once(amount: Decimal, rate: Decimal, bonus: Decimal) -> None:
    exact = Fraction(amount) * Fraction(rate) * (1 + Fraction(bonus))
    assert earned_credits(amount=amount, rate=rate, bonus=bonus) == floor(exact)


@given(cost=st.integers(min_value=0, max_value=10**12), fraction=st.decimals(0, 1, places=4))
def test_cashback_is_exact_in_fractions_of_a_credit(cost: int, fraction: Decimal) -> None:
    assert cashback_parts(cost=cost, fraction=fraction) == cost * Fraction(fraction) * CREDIT_PARTS


def test_a_fraction_of_a_part_is_refused() -> None:
    with pytest.raises(ValueError, match="four decimals"):
        cashback_parts(cost=3, fraction=Decimal("0.00005"))


def test_badges_and_modifiers_add_up_and_the_larger_debt_counts() -> None:
    badges = [
        Badge(bonus_creds_surveys=Decimal("0.1"), bonus_daily_check_in_attempts=1, acceptable_credit_debt=70),
        Badge(
            bonus_creds_surveys=Decimal("0.02"),
            bonus_daily_check_in_attempts=2,
            acceptable_credit_debt=30,
            credits_back_percent=Decimal("0.8"),
        ),
    ]
    back = Modifier(modifier_type=ModifierType.BONUS_CREDITS_BACK, value=Decimal("0.9"))
    surveys = Modifier(modifier_type=ModifierType.BONUS_SURVEYS_CREDITS, value=Decimal("0.003"))
    modifiers = [surveys, back, back]
    benefits = benefits_of(badges=badges, modifiers=modifiers)
    assert benefits.bonus(ModifierType.BONUS_SURVEYS_CREDITS) == Decimal("0.123")
    assert benefits.bonus(ModifierType.BONUS_OFFERWALL_CREDITS) == 0
    assert benefits.check_in_attempts == 4
    assert benefits.badge_debt == 70
    assert benefits.modifier_bonuses[ModifierType.BONUS_CREDITS_BACK] == 1
    assert benefits.cashback_fraction == 1


@pytest.mark.parametrize(
    ("upper", "experience", "expected"),
    [
        (200, 100, "0"),
        (200, 150, "0.5"),
        (103, 101, "0.3333"),
        (200, 250, "1"),
        (200, 5, "0"),
        (None, 5, "1"),
    ],
)
def test_progress_is_a_fraction_of_the_badges_range(
    upper: int | None, experience: int, expected: str
) -> None:
    badge = Badge(exp_lower_bound=100, exp_upper_bound=upper)
    assert progress_within(badge=badge, experience=experience) == Decimal(expected)


@pytest.mark.parametrize(
    ("ranges", "faults"),
    [
        ([(0, None)], []),
        ([(5, None), (0, 5)], []),
        ([], ["at least one"]),
        ([(1, None)], ["A, begins at 1 instead of 0"]),
        ([(0, 5)], ["top badge is missing: A ends at 5"]),
        ([(0, 5), (7, None)], ["gap from 5 to 7, between A and B"]),
        ([(0, 9), (7, None)], ["A and B overlap at 7"]),
        ([(0, None), (7, None)], ["A and B overlap at 7"]),
        ([(0, 0), (0, None)], ["A and B overlap at 0"]),
        ([(0, 2**53 - 1), (2**53 - 1, None)], ["JSON"]),
        (
            [(2, 3), (4, 8), (7, 9)],
            ["begins at 2", "gap from 3 to 4", "overlap at 7", "top badge is missing"],
        ),
    ],
)
def test_each_fault_of_the_levels_is_named(ranges: list[tuple[int, int | None]], faults: list[str]) -> None:
    badges = [
        Badge(name=name, exp_lower_bound=lower, exp_upper_bound=upper)
        for name, (lower, upper) in zip("ABC", ranges, strict=False)
    ]
    for words, sentence in zip(faults, level_faults(badges), strict=True):
        assert words in sentence
