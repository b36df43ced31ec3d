"""Rates of coins: each chain's coin has its own, and chains with the same coin share them."""

import random
from datetime import date
from decimal import Decimal

import pytest
from django.core.exceptions import ValidationError
from pytest_django import Settings

from accounting import queries
from accounting.models import CoinRate, coins
from accounting.services import rates
from gateway.chain.config import home
from tests.relay.two_chains import settings_of

pytestmark = pytest.mark.django_db
_DAY = date(2026, 1, 31)


@pytest.fixture(autouse=True)
def two_chains_of_ether(settings: Settings) -> None:
    """Two chains besides home, both with ETH."""
    settings.CHAINS = {number: settings_of(number) for number in random.sample(range(10**6, 10**9), 2)}


def test_a_line_names_its_coin_and_is_of_home_without_one() -> None:
    assert coins() == [home().currency, "ETH"]
    rates.store(f"{_DAY},usd,1.5,ETH\n{_DAY},usd,3\n{_DAY},usd,1.25,ETH")

    stored = {(rate.coin, rate.currency): rate.price for rate in CoinRate.objects.all()}
    assert stored == {("ETH", "usd"): Decimal("1.25"), (home().currency, "usd"): Decimal(3)}
    assert [(rate.coin, rate.price) for rate in queries.recorded_rates()] == [
        ("ETH", Decimal("1.25")),
        (home().currency, Decimal(3)),
    ]


def test_what_values_the_gas_of_home_is_of_its_coin_alone() -> None:
    rates.store(f"{_DAY},usd,1.5,ETH")
    assert queries.newest_prices() == {}
    assert queries.rates(since=_DAY, until=date(2026, 2, 1)) == {}
    rates.store(f"{_DAY},usd,3")
    assert queries.newest_prices()["usd"].price == 3
    assert queries.rates(since=_DAY, until=date(2026, 2, 1)) == {(_DAY, "usd"): Decimal(3)}


def test_a_coin_that_no_chain_has_is_refused() -> None:
    with pytest.raises(ValidationError, match="Line 1: Choose one of"):
        rates.store(f"{_DAY},usd,1.5,BTC")
    assert not CoinRate.objects.exists()
