"""A price of a credit on a further chain is used only while it is young, and near the recorded rates of the coins."""

import random
from collections.abc import Callable
from datetime import date, timedelta
from decimal import Decimal
from unittest.mock import Mock

import pytest
from django.conf import settings as configured
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from accounting.models import CoinRate
from devstack.world.profiles import Profile
from gateway.chain.config import chain_of, home, on_chain
from relay import checks
from relay.errors import ChainPriceOutdated
from relay.models import CreditPrice, RelayTransaction
from relay.queries.prices import price_states, watch
from tests.database import rewrite
from tests.relay.callers import execute
from tests.relay.conftest import Accept, Refused
from tests.relay.quoting import prepare
from tests.relay.two_chains import ForeignChain, settings_of
from tests.relay.workers import broadcast_all, track
from users.models import User

pytestmark = pytest.mark.django_db
_DAY = date(2026, 1, 31)


@pytest.fixture
def send(foreign: ForeignChain, profile: Profile, user: User) -> Callable[[], RelayTransaction]:
    """Return a function that sends a call of the profile on the further chain."""

    def run() -> RelayTransaction:
        watch.forget()
        with on_chain(foreign.id):
            made = execute(user=user, call=foreign.sign(profile), now=timezone.now())
        return RelayTransaction.objects.get(transaction_hash=made)

    return run


def set_rates(*, coin_price: str, home_price: str = "1", currency: str = "usd", day: date = _DAY) -> None:
    for coin, price in (("ETH", coin_price), (home().currency, home_price)):
        CoinRate.objects.create(day=day, coin=coin, currency=currency, price=Decimal(price))


def grow_old(foreign: ForeignChain, age: timedelta) -> None:
    rewrite(CreditPrice.objects.filter(chain_id=foreign.id), valid_from=timezone.now() - age)


def use_of(foreign: ForeignChain) -> tuple[bool, bool]:
    """Return whether the price is too old, and whether it is off its margin."""
    use = price_states()[foreign.id].use
    return use.is_too_old, use.is_off_margin


def test_a_price_that_is_too_old_stops_that_chain_alone_until_it_is_renewed(
    foreign: ForeignChain, send: Callable[[], RelayTransaction], accept: Accept, refused: Refused, user: User
) -> None:
    before = send()
    grow_old(foreign, timedelta(days=30, minutes=1))
    with refused(ChainPriceOutdated) as refusal:
        send()
    assert (refusal.value.status, refusal.value.members, refusal.value.retry_after) == (
        503,
        {"chainId": foreign.id},
        300,
    )
    assert "is too old" in refusal.value.detail
    assert accept().chain_id == configured.CHAIN_ID
    # A call in flight is settled all the same.
    with on_chain(foreign.id):
        broadcast_all()
        foreign.mine(2)
        assert track() == 1
    before.refresh_from_db()
    assert before.status == "Success"

    CreditPrice.objects.create(chain_id=foreign.id, credit_wei=before.credit_wei)
    assert send().chain_id == foreign.id


def test_a_price_is_used_to_the_end_of_its_days(foreign: ForeignChain) -> None:
    grow_old(foreign, timedelta(days=30) - timedelta(minutes=1))
    assert use_of(foreign) == (False, False)
    grow_old(foreign, timedelta(days=30, minutes=1))
    assert use_of(foreign) == (True, False)


@pytest.mark.parametrize(
    ("coin_price", "is_off"),
    [("1.24", False), ("1.25", False), ("1.26", True), ("0.76", False), ("0.75", False), ("0.74", True)],
)
def test_a_credit_is_worth_as_much_as_at_home_within_the_margin(
    foreign: ForeignChain, coin_price: str, is_off: bool
) -> None:
    scale = random.randint(1, 10**6)
    set_rates(coin_price=str(Decimal(coin_price) * scale), home_price=str(scale))
    assert use_of(foreign) == (False, is_off)
    # The price counts, and not the rate alone.
    wei = CreditPrice.objects.get(chain_id=foreign.id).credit_wei
    CreditPrice.objects.create(chain_id=foreign.id, credit_wei=int(wei / Decimal(coin_price)))
    assert use_of(foreign) == (False, False)


def test_a_price_off_the_rates_stops_the_chain_and_prepare_says_so(
    foreign: ForeignChain,
    send: Callable[[], RelayTransaction],
    refused: Refused,
    user: User,
    profile: Profile,
) -> None:
    set_rates(coin_price="3")
    with refused(ChainPriceOutdated) as refusal:
        send()
    assert "too far from the recorded rate of ETH" in refusal.value.detail
    with on_chain(foreign.id):
        prepared = prepare(user, profile)
    assert ([refusal.code for refusal in prepared.refusals], prepared.quote) == (
        ["chain-price-outdated"],
        None,
    )
    states = {one["chainId"]: one["state"] for one in Client().get("/api/service").json()["chains"]}
    assert states == {configured.CHAIN_ID: "accepting", foreign.id: "paused"}


def test_of_several_currencies_the_one_with_the_newest_rates_counts(foreign: ForeignChain) -> None:
    set_rates(coin_price="1", day=_DAY)
    set_rates(coin_price="9", currency="eur", day=_DAY - timedelta(days=1))
    assert use_of(foreign) == (False, False)
    set_rates(coin_price="9", currency="eur", day=_DAY + timedelta(days=1))
    assert use_of(foreign) == (False, True)
    # A rate of one coin alone compares nothing.
    CoinRate.objects.create(day=_DAY + timedelta(days=9), coin="ETH", currency="gbp", price=1)
    # And a pair of rates is as old as its older one.
    CoinRate.objects.create(day=_DAY + timedelta(days=9), coin="ETH", currency="usd", price=1)
    assert use_of(foreign) == (False, True)


def test_without_rates_only_the_age_counts_and_check_warns(foreign: ForeignChain) -> None:
    assert use_of(foreign) == (False, False)
    assert [(one.id, one.msg.split(":")[0]) for one in checks.rates_of_coins()] == [
        ("relay.W004", f"The price of a credit on chain {foreign.id} is compared with no rate")
    ]
    set_rates(coin_price="1")
    assert checks.rates_of_coins() == []


def test_the_limits_are_those_of_the_chain(foreign: ForeignChain, settings: Settings) -> None:
    keys = {"relayer_keys": settings.RELAY_RELAYER_KEYS}
    settings.CHAINS = {foreign.id: settings_of(foreign.id, price_days=60, price_margin_percent=300, **keys)}
    set_rates(coin_price="3")
    grow_old(foreign, timedelta(days=59))
    assert use_of(foreign) == (False, False)


def test_home_has_no_limits(foreign: ForeignChain, accept: Accept) -> None:
    rewrite(CreditPrice.objects.all(), valid_from=timezone.now() - timedelta(days=9_999))
    set_rates(coin_price="0.001", home_price="1")
    assert accept().chain_id == configured.CHAIN_ID


def test_a_process_reads_the_prices_of_many_calls_once(
    foreign: ForeignChain, send: Callable[[], RelayTransaction], monkeypatch: pytest.MonkeyPatch
) -> None:
    read = Mock(side_effect=price_states)
    monkeypatch.setattr("relay.queries.prices.price_states", read)
    send()
    for _ in range(5):
        assert watch.use_of(chain_of(foreign.id)).is_within
    assert read.call_count == 1
    # After some seconds it reads them again.
    monkeypatch.setattr("relay.queries.prices._REREAD_SECONDS", 0)
    assert watch.use_of(chain_of(foreign.id)).is_within
    assert read.call_count == 2
