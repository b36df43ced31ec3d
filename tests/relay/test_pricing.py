"""Costs in whole credits, rounded up once."""

from fractions import Fraction
from math import ceil

from hypothesis import given
from hypothesis import strategies as st

from relay.pricing import credits_of, gas_limit_for

gas = st.integers(21_000, 42_000_000)
wei = st.integers(0, 10**20)
rates = st.integers(1, 10**15)


@given(wei=wei, rate=rates)
def test_a_cost_is_the_exact_quotient_rounded_up(wei: int, rate: int) -> None:
    assert credits_of(wei, credit_wei=rate) == ceil(Fraction(wei, rate))


@given(credits=gas, rate=rates)
def test_an_exact_quotient_is_not_rounded_up(credits: int, rate: int) -> None:
    assert credits_of(credits * rate, credit_wei=rate) == credits


def test_one_wei_over_is_another_credit() -> None:
    assert credits_of(10**12, credit_wei=10**12) == 1
    assert credits_of(10**12 + 1, credit_wei=10**12) == 2


@given(estimate=gas, more=gas)
def test_a_limit_leaves_fifteen_percent_rounded_up(estimate: int, more: int) -> None:
    padded = estimate + ceil(Fraction(estimate * 15, 100))
    assert gas_limit_for(estimate=estimate, maximum=padded + more) == padded


@given(estimate=gas, share=st.integers(2, 15))
def test_a_limit_is_padded_up_to_the_maximum_while_two_percent_are_left(estimate: int, share: int) -> None:
    maximum = estimate + ceil(Fraction(estimate * share, 100))
    assert gas_limit_for(estimate=estimate, maximum=maximum) == maximum


@given(estimate=gas, less=gas)
def test_with_less_than_two_percent_the_limit_is_above_the_maximum(estimate: int, less: int) -> None:
    least = estimate + ceil(Fraction(estimate * 2, 100))
    assert gas_limit_for(estimate=estimate, maximum=max(0, least - less)) == least
