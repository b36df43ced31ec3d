"""
Months are closed with Stripe's double behind Stripe's own SDK: tax by country, fees and bank payouts included.

`CLOSING=200x12x600` sets the number of people, of months, and of acts in a month.
"""

import json
import os
import secrets
from datetime import UTC, datetime
from typing import Any

import pytest
import stripe as sdk

from devstack.services.stack import Services
from payments.models import StripeEvent
from payments.services.snapshots import EVENT_TYPES
from payments.stripe import set_billing_client
from tests.accounting.course import close_months
from tests.accounting.timeline import sheet
from tests.accounting.world import World
from tests.payments.stripe_accounts import DoubleAccount

_COUNTRIES = ("DE", "CH", "FR", "US")


class DoubleWorld(World):
    """The same at the double, where some responses are lost after Stripe has done what was asked."""

    def __init__(self, double: DoubleAccount, people: int) -> None:
        self._now = double.now()
        super().__init__(double, people)
        self.banked = 0
        self._known: set[str] = set()
        self._known_at = self.now
        for payer in self.payers:
            address = {"country": self.chance.choice(_COUNTRIES), "line1": "Way 1", "postal_code": "10115"}
            double.v1.customers.update(payer.customer.stripe_customer_id, {"address": address})

    @property
    def now(self) -> datetime:
        """The time since which the double's clock has only gone on by itself."""
        return self._now

    def pass_time(self, seconds: int) -> None:
        super().pass_time(seconds)
        self._now = self.stripe.now()

    def new_events(self) -> list[bytes]:
        rows = self.stripe.webhooks(*EVENT_TYPES, since=self._known_at)
        new = [row for row in rows if row["id"] not in self._known]
        self._known, self._known_at = {row["id"] for row in rows}, self.now
        return [json.dumps(row).encode() for row in new]

    def buy(self, *arguments: Any) -> None:
        if self.chance.random() < 0.2:
            self.stripe.controls.error_after_commit(count=1)
        super().buy(*arguments)
        self.stripe.controls.clear_faults()

    def end_month(self) -> None:
        """Pay the balance to the bank."""
        self.banked += sum(row["amount"] for row in self.stripe.controls.pay_out()["payouts"])

    def movements(self, since: datetime, until: datetime) -> list[tuple[str, str, int, int, int]]:
        created = {"gte": int(since.timestamp()), "lt": int(until.timestamp())}
        return [
            (row["currency"], row["reporting_category"], row["amount"], row["fee"], row["net"])
            for row in self.stripe.rows("/v1/balance_transactions", created=created)
        ]

    def charges(self) -> list[tuple[str, int]]:
        rows = self.stripe.rows("/v1/charges")
        return [(row["payment_intent"], row["amount"]) for row in rows if row["status"] == "succeeded"]


@pytest.fixture
def double(services: Services, settings: Any, monkeypatch: pytest.MonkeyPatch) -> DoubleAccount:
    account = DoubleAccount(services.stripe)
    account.controls.set_webhook_endpoint(None, "")
    account.controls.reset()
    account.controls.set_clock(int(datetime(2025, 1, 1, tzinfo=UTC).timestamp()))
    settings.STRIPE_SECRET_KEY = services.stripe.secret_key
    settings.STRIPE_API_BASE = services.stripe.url
    settings.STRIPE_WEBHOOK_SECRETS = [f"whsec_{secrets.token_hex(12)}"]
    settings.STRIPE_PRODUCT_ID = f"credits-{secrets.token_hex(4)}"
    settings.STRIPE_AUTOMATIC_TAX = True
    monkeypatch.setattr(sdk.HTTPClient, "INITIAL_DELAY", 0.01)
    set_billing_client(None)
    return account


@pytest.mark.django_db(transaction=True)
@pytest.mark.timeout(0)
def test_months_tie_to_the_balance_transactions_of_the_double(double: DoubleAccount) -> None:
    people, count, moves = map(int, os.environ.get("CLOSING", "3x2x12").split("x"))
    world = DoubleWorld(double, people)
    with world.dated():
        payer = world.payers[0]
        payer.upsert(2_550, world.currencies[payer.user.pk])

    closed = close_months(world, count, moves=moves)

    stated = [row for month in closed for row in sheet(month, "stripe") if row["category"] == "payout"]
    assert sum(row["gross"] for row in stated) == -world.banked
    taxes = [row for month in closed for row in sheet(month, "tax")]
    assert {row["country"] for row in taxes} <= {*_COUNTRIES}
    assert sum(row["tax collected"] for row in taxes) > 0
    assert not StripeEvent.objects.exclude(status="processed").exists()
