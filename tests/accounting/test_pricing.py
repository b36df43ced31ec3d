"""What 1.00 buys and leaves, before a rate is asked for."""

import random
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.conf import settings
from django.utils import timezone

from accounting.models import CoinRate
from accounting.pricing import outlooks
from accounting.queries import worth_of
from payments.models import PayoutRate
from tests.accounting.world import World
from tests.fakes.billing import FakeBilling
from tests.staff import browser_of, member


def test_a_higher_gas_price_buys_fewer_calls_and_a_higher_coin_price_lowers_the_margin() -> None:
    # 1,000 credits of 10^12 wei are 0.001 coins.
    rows = outlooks(
        credits_per_major_unit=1_000, credit_wei=10**12, call_credits=Decimal(50), coin_price=Decimal(30)
    )

    assert [row.calls for row in rows] == [20, Decimal(20) / 3, 2]
    assert [row.margin for row in rows] == [Decimal("0.97"), Decimal("0.91"), Decimal("0.70")]


def test_an_unknown_figure_is_named_and_not_guessed() -> None:
    rows = outlooks(credits_per_major_unit=1_000, credit_wei=10**12, call_credits=None, coin_price=None)

    assert {(row.calls, row.margin) for row in rows} == {(None, None)}


@pytest.mark.django_db
def test_the_form_for_a_rate_shows_what_today_buys(stripe: FakeBilling) -> None:
    world = World(stripe, 1)
    stripe.pass_time(int(timedelta(days=3_000).total_seconds()))
    world.earn(world.payers[0])
    for _ in range(5):
        world.call(world.payers[0])
    price = Decimal(random.randint(1, 9_999)).scaleb(-2)
    CoinRate.objects.create(day=date(2025, 1, 1), coin=settings.CHAIN_COIN, currency="usd", price=price)

    page: Any = browser_of(member("finance")).get("/admin/payments/payoutrate/add/")

    usd, eur = ({row["currency"]: row for row in page.context["prices"]}[name] for name in ("usd", "eur"))
    rate = PayoutRate.objects.filter(currency="usd").latest("valid_from").credits_per_major_unit
    worth = Decimal(rate * settings.CREDIT_WEI) / 10**18
    assert usd["outlooks"][1].margin == 1 - 3 * worth * price
    assert usd["outlooks"][0].calls == rate / page.context["today"].call_credits
    assert page.context["gas_price"].endswith(" gwei")
    assert eur["outlooks"][0].margin is None
    assert "no rate: import one" in page.content.decode()


@pytest.mark.django_db
def test_a_users_page_shows_paid_and_granted_credits_and_the_debt(stripe: FakeBilling) -> None:
    world = World(stripe, 1)
    payer = world.payers[0]
    payer.upsert(2_550)
    world.deliver()
    stripe.refund(payer.payout.stripe_payment_intent_id, 50)
    world.deliver()
    world.earn(payer)

    worth = worth_of(payer.user, now=timezone.now())
    page = browser_of(member("support")).get(f"/admin/users/user/{payer.user.pk}/change/")

    kept = payer.payout.credits - payer.payout.credits * 50 // 2_550
    assert (worth.paid, worth.given, worth.debt, worth.owed) == (
        kept,
        payer.balance - kept,
        0,
        [("usd", 2_500)],
    )
    assert f"{worth.paid:,}" in page.content.decode()
    assert "25.00 USD" in page.content.decode()
