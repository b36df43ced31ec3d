"""Costs in whole credits, rounded up once."""

from fractions import Fraction
from math import ceil

from hypothesis import given
from hypothesis import strategies as st

from relay.pricing import cost_in_credits, gas_limit_for

gas = st.integers(21_000, 42_000_000)
prices = st.integers(0, 10**13)
rates = st.integers(1, 10**15)


@given(gas=gas, price=prices, rate=rates)
def test_a_cost_is_the_exact_quotient_rounded_up(gas: int, price: int, rate: int) -> None:
    assert cost_in_credits(gas=gas, price_wei=price, credit_wei=rate) == ceil(Fraction(gas * price, rate))


@given(gas=gas, price=prices, rate=rates)
def test_an_exact_quotient_is_not_rounded_up(gas: int, price: int, rate: int) -> None:
    assert cost_in_credits(gas=gas * rate, price_wei=price, credit_wei=rate) == gas * price


def test_one_wei_over_is_another_credit() -> None:
    assert cost_in_credits(gas=1, price_wei=10**12, credit_wei=10**12) == 1
    assert cost_in_credits(gas=1, price_wei=10**12 + 1, credit_wei=10**12) == 2
    assert cost_in_credits(gas=100_000, price_wei=10**9, credit_wei=10**12) == 100


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
