"""Sums of money: how they are shown, what they pay out, how much is taken back."""

import pytest
from django.conf import settings
from hypothesis import given
from hypothesis import strategies as st

from payments.amounts import MINIMUM_CHARGE, clawback_target, display_amount, payout_credits


@pytest.mark.parametrize(
    ("minor", "currency", "text"),
    [
        (2550, "usd", "$25.50"),
        (900, "eur", "€9.00"),
        (5, "gbp", "£0.05"),
        (1200, "chf", "CHF12.00"),
        (123_456_789, "usd", "$1234567.89"),
        (2550, "aud", "$25.50"),
    ],
)
def test_an_amount_is_shown_with_its_symbol_and_two_decimals(minor: int, currency: str, text: str) -> None:
    assert display_amount(amount_minor=minor, currency=currency) == text


@given(minor=st.integers(0, 10**12), currency=st.sampled_from(sorted(MINIMUM_CHARGE)))
def test_no_digit_of_an_amount_is_lost(minor: int, currency: str) -> None:
    shown = display_amount(amount_minor=minor, currency=currency)
    assert int("".join(letter for letter in shown if letter.isdigit())) == minor
    assert shown[-3] == "."


def test_every_currency_that_is_sold_has_a_least_amount() -> None:
    assert set(settings.BILLING_CURRENCIES) <= set(MINIMUM_CHARGE)


@given(collected=st.integers(1, 10**9), rate=st.integers(1, 10**6))
def test_a_payout_is_rounded_down_once(collected: int, rate: int) -> None:
    worth = payout_credits(collected_minor=collected, credits_per_major_unit=rate)
    assert worth * 100 <= collected * rate < (worth + 1) * 100


@given(
    paid_out=st.integers(0, 10**9),
    collected=st.integers(1, 10**9),
    returned=st.integers(-(10**9), 3 * 10**9),
)
def test_a_clawback_is_proportional_and_never_more_than_was_paid_out(
    paid_out: int, collected: int, returned: int
) -> None:
    target = clawback_target(paid_out=paid_out, collected_minor=collected, returned_minor=returned)
    assert 0 <= target <= paid_out
    if returned >= collected:
        assert target == paid_out
    elif returned <= 0:
        assert target == 0
    else:
        assert target * collected <= paid_out * returned < (target + 1) * collected
