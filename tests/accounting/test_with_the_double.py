"""Months are closed with Stripe's double behind Stripe's own SDK: tax by country, fees and bank payouts included."""

import secrets
from collections import Counter
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest

from devstack.services.stack import Services
from payments.models import Payout
from payments.stripe import set_billing_client
from tests.accounting.test_twelve_months import sheet, total
from tests.accounting.world import World, months
from tests.payments.payers import Payer
from tests.payments.stripe_accounts import DoubleAccount
from tests.payments.webhook_events import process_all_events

pytestmark = pytest.mark.django_db


class DoubleWorld(World):
    """The same at the double."""

    def __init__(self, stripe: Any, people: int) -> None:
        super().__init__(stripe, people)
        self.disputed: list[str] = []

    def deliver(self) -> None:
        with self.dated():
            process_all_events(self.stripe)

    def dispute(self, payer: Payer) -> None:
        # The double takes one dispute of a charge, as card networks do.
        payouts = Payout.objects.filter(user=payer.user, refunded_minor=0, disputed_minor=0).exclude(
            stripe_payment_intent_id__in=self.disputed
        )
        if payout := self.chance.choice([None, *payouts]):
            self.disputed.append(payout.stripe_payment_intent_id)
            dispute = self.stripe.dispute(payout.stripe_payment_intent_id)
            if self.chance.random() < 0.5:
                self.stripe.reinstate(dispute)


@pytest.fixture
def double(services: Services, settings: Any) -> DoubleAccount:
    account = DoubleAccount(services.stripe)
    account.controls.set_webhook_endpoint(None, "")
    account.controls.reset()
    account.controls.set_clock(int(datetime(2025, 1, 1, tzinfo=UTC).timestamp()))
    settings.STRIPE_SECRET_KEY = services.stripe.secret_key
    settings.STRIPE_API_BASE = services.stripe.url
    settings.STRIPE_WEBHOOK_SECRETS = [f"whsec_{secrets.token_hex(12)}"]
    settings.STRIPE_PRODUCT_ID = f"credits-{secrets.token_hex(4)}"
    settings.STRIPE_AUTOMATIC_TAX = True
    set_billing_client(None)
    return account


def test_months_tie_to_the_balance_transactions_of_the_double(double: DoubleAccount) -> None:
    world = DoubleWorld(double, 3)
    for payer, country in zip(world.payers, ("DE", "CH", "DE"), strict=True):
        address = {"country": country, "line1": "Way 1", "city": "Town", "postal_code": "10115"}
        double.v1.customers.update(payer.customer.stripe_customer_id, {"address": address})
    banked = 0
    for begins, ends in pairwise(months(world.now, 3)):
        for _ in range(12):
            world.move_to(
                min(ends - timedelta(hours=2), world.now + timedelta(hours=world.chance.randint(1, 50)))
            )
            world.live()
        banked = sum(payout["amount"] for payout in double.controls.pay_out()["payouts"])
        world.move_to(ends + timedelta(hours=30))
        month = world.prepare(begins)
        assert month.problems == []
        month = world.close(month)

        for name in ("charges", "refunds and disputes"):
            for row in sheet(month, name):
                assert (row["difference"], row["what differs"]) == (0, ""), name
        rows = list(double.v1.balance_transactions.list({"limit": 100}).auto_paging_iter())
        own = [row for row in rows if begins.timestamp() <= row.created < ends.timestamp()]
        nets: Counter[str] = Counter()
        for row in own:
            nets[row.currency] += row.net
        stated = sheet(month, "stripe")
        assert total(stated, "net") == nets
        assert sum(row["gross"] for row in stated if row["category"] == "payout") == -banked
        assert -sum(row["fees"] for row in stated) == sum(row.fee for row in own)
        taxes = sheet(month, "tax")
        payouts = Payout.objects.filter(entry__created_at__gte=begins, entry__created_at__lt=ends)
        assert {row["country"] for row in taxes} <= {"DE", "CH"}
        assert sum(row["tax collected"] for row in taxes) == sum(payout.tax_minor for payout in payouts)
    assert any(payout.tax_minor for payout in Payout.objects.all())
