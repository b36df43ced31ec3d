"""A month has the costs of each coin: in the coin, and at the rates of its days. They tie to what relayers spent."""

import random
import secrets
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from django.utils import timezone
from pytest_django import Settings

from accounting.models import Month
from accounting.services import closing, rates
from credits.models import EntrySource
from credits.services import entries, holds
from gateway.chain.config import home
from relay.models import Attempt, Relayer, TopUp
from tests.accounting.timeline import sheet
from tests.credits.holding import place_hold
from tests.database import tamper
from tests.factories import AttemptFactory, RelayerFactory, UserFactory, make
from tests.relay.two_chains import settings_of

pytestmark = pytest.mark.django_db
_BEGIN = datetime(2025, 1, 1, tzinfo=UTC)
_GWEI = 10**9


@pytest.fixture
def further(settings: Settings) -> int:
    """A month with credits, and the id of a further chain of another coin."""
    settings.STRIPE_SECRET_KEY = ""
    entries.grant(user=UserFactory.create(), credits=5, source=EntrySource.SURVEYS, key=secrets.token_hex(8))
    tamper("UPDATE credits_entry SET created_at = %s", _BEGIN + timedelta(days=1))
    chain_id = random.randrange(10**6, 10**9)
    settings.CHAINS = {chain_id: settings_of(chain_id)}
    return chain_id


def spend(chain_id: int, day: int, gas_price_wei: int, *, credits: int = 0, price: int = 10**12) -> Attempt:
    """Have a relayer of the chain spend 21,000 gas for a call on a day of January."""
    at = _BEGIN + timedelta(days=day - 1, hours=random.randrange(24))
    relayer = RelayerFactory.create(chain_id=chain_id)
    user, key = UserFactory.create(), secrets.token_hex(8)
    entries.grant(user=user, credits=100, source=EntrySource.SURVEYS, key=key)
    hold = place_hold(user=user, credits=100, key=f"{key}:hold").hold
    holds.close(costs={hold.pk: credits})
    return AttemptFactory.create(
        is_mined=True,
        chain_id=chain_id,
        relay_transaction__chain_id=chain_id,
        relay_transaction__relayer=relayer,
        relay_transaction__hold=hold,
        relay_transaction__credit_wei=price,
        effective_gas_price_wei=gas_price_wei,
        created_at=at,
        mined_at=at,
    )


def prepared() -> Month:
    closing.request_sheets(begins_on=_BEGIN.date(), now=timezone.now())
    assert closing.prepare_waiting(now=timezone.now()) == 1
    return Month.objects.get()


def test_a_further_coin_has_its_costs_in_the_coin_and_at_the_rates_of_its_days(further: int) -> None:
    lyx = home().currency
    rates.store(f"2025-01-03,usd,10,{lyx}\n2025-01-03,usd,3000.5,ETH\n2025-01-07,usd,4000,ETH")
    spend(home().id, 3, 50 * _GWEI)
    spend(further, 3, 11 * _GWEI, credits=70, price=3 * 10**12)
    spend(further, 7, 13 * _GWEI, credits=2, price=5 * 10**12)
    make(
        TopUp, chain_id=further, relayer=Relayer.objects.filter(chain_id=further).first(), fee_wei=_GWEI,
        ended_at=_BEGIN + timedelta(days=6, hours=3), status="mined",
    )  # fmt: skip
    # Of February.
    spend(further, 32, _GWEI)

    month = prepared()

    worth = Decimal(21_000 * 11) * Decimal("3000.5") + Decimal(21_000 * 13 + 1) * 4000
    assert [
        (row["coin"], row["currency"], int(row["gas"]), row["cost"]) for row in sheet(month, "coins")
    ] == [
        (lyx, "usd", 21_000 * 50 * _GWEI, round(Decimal("0.00105") * 10 * 100)),
        ("ETH", "usd", (21_000 * 24 + 1) * _GWEI, round(worth / 10**9 * 100)),
    ]
    relayers = {row["coin"]: row for row in sheet(month, "relayers")}
    ether = relayers["ETH"]
    assert (ether["transactions"], ether["credits charged"]) == (2, 72)
    assert int(ether["charged, at the calls' prices"]) == 70 * 3 * 10**12 + 2 * 5 * 10**12
    assert int(ether["spent by relayers"]) == 21_000 * 24 * _GWEI
    assert int(ether["transfers to relayers"]) == _GWEI
    assert {coin: int(row["not in coins"]) for coin, row in relayers.items()} == {lyx: 0, "ETH": 0}
    assert month.problems == []
    # Home's own tables stay those of home.
    assert sum(int(row["gas"]) for row in sheet(month, "gas")) == 21_000 * 50 * _GWEI


def test_a_month_without_a_rate_of_a_further_coin_cannot_be_closed(further: int) -> None:
    spend(further, 9, _GWEI)
    assert prepared().problems == ["Rates of further coins in USD are missing: ETH on 2025-01-09."]
    rates.store("2025-01-09,usd,1,ETH")
    assert prepared().problems == []


def test_what_relayers_spent_beside_the_table_stops_the_month(
    further: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rates.store("2025-01-09,usd,1,ETH")
    spend(further, 9, _GWEI)
    monkeypatch.setattr("accounting.queries.spent_on_chains", lambda **_: [])
    month = prepared()
    assert month.problems == [
        "Relayers spent 21,000,000,000,000 wei of ETH that the table Coins does not have."
    ]
    (row,) = sheet(month, "relayers")
    assert int(row["not in coins"]) == 21_000 * _GWEI
