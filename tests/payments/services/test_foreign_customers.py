"""Customers of others on the same Stripe account: their events are done with at once, whatever they pay for."""

import secrets
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from credits.models import CreditEntry
from payments.models import Payout, StripeEvent, Subscription
from payments.services import events
from payments.services.reconciliation import repairs
from payments.stripe import objects
from tests.fakes.billing import FakeBilling
from tests.payments.faults import fault_injection
from tests.payments.payers import Payer
from tests.payments.reconciling import assert_no_findings
from tests.payments.stripe_accounts import DoubleAccount
from tests.payments.webhook_events import process_all_events, process_events, receive_event, webhook_body
from users.models import User

pytestmark = pytest.mark.django_db


def _foreign_customer(fake: FakeBilling) -> str:
    """Return a customer of another system who has just paid for a month."""
    foreign_id = fake.create_customer(profile_address="0x", user_id="0", key=secrets.token_hex(8))
    fake.capture(foreign_id)
    fake.has_payment_method(customer_id=foreign_id)
    fake.create_subscription(
        customer_id=foreign_id,
        amount_minor=900,
        currency="usd",
        cancels_at_period_end=False,
        key=secrets.token_hex(8),
    )
    return foreign_id


def test_events_of_foreign_customers_are_processed_as_not_ours_and_change_nothing(
    fake: FakeBilling, user: User, amount: int
) -> None:
    Payer(fake, user).with_card().upsert(amount)
    before, event_count = list(Subscription.objects.values()), len(fake.events)
    _foreign_customer(fake)
    process_events(fake.events[event_count:], now=fake.now())
    rows = dict(StripeEvent.objects.values_list("type", "outcome"))
    assert set(rows) == {
        "setup_intent.succeeded",
        "customer.subscription.created",
        "invoice.paid",
        "customer.subscription.updated",
    }
    assert set(rows.values()) == {"not-ours"}
    assert set(StripeEvent.objects.values_list("status", "last_error")) == {("processed", "")}
    assert list(Subscription.objects.values()) == before
    assert not Payout.objects.exists()
    assert not CreditEntry.objects.exists()


def test_a_refund_of_a_foreign_customer_is_processed_as_nothing_to_do(
    fake: FakeBilling, rates: dict[str, int]
) -> None:
    foreign_id = _foreign_customer(fake)
    (state,) = fake.list_subscriptions(customer_id=foreign_id)
    event_count = len(fake.events)
    fake.refund(fake.retrieve_invoice(invoice_id=state.latest_invoice_id).payment_intent_id)
    process_events(fake.events[event_count:], now=fake.now())
    assert StripeEvent.objects.values_list("type", "status", "outcome").get() == (
        "refund.created",
        "processed",
        "nothing",
    )


def test_only_the_customer_of_a_foreign_invoice_is_read(fake: FakeBilling, rates: dict[str, int]) -> None:
    foreign_id = _foreign_customer(fake)
    fake.calls.clear()
    assert repairs.pay_out_missed_invoices(now=fake.now()) == 0
    assert dict(fake.calls) == {"paid_invoices_since": 1}
    assert foreign_id not in str(list(Subscription.objects.values()))


def test_beat_does_not_read_the_subscription_of_a_foreign_customer(
    fake: FakeBilling, user: User, amount: int
) -> None:
    payer = Payer(fake, user).with_card()
    payer.upsert(amount)
    _foreign_customer(fake)
    with fault_injection() as client:
        client.before["retrieve_subscription"] = lambda: None
        assert repairs.pay_out_missed_invoices(now=fake.now()) == 1
    assert client.calls["retrieve_subscription"] == 1
    assert payer.balance == payer.payout.credits


def test_foreign_customers_are_ignored_over_http_too(
    double: DoubleAccount, payer: Payer, amount: int
) -> None:
    payer.upsert(amount)
    foreign_id = double.v1.customers.create(
        {"metadata": {"user": "no number", "address": "Main Street 1"}}
    ).id
    double.capture(foreign_id)
    method = double.v1.customers.payment_methods.list(foreign_id).data[0].id
    product = double.v1.products.create({"name": "Hats"}).id
    price = {"currency": "usd", "product": product, "unit_amount": 700, "recurring": {"interval": "month"}}
    for _ in range(2):
        double.v1.subscriptions.create(
            {"customer": foreign_id, "items": [{"price_data": price}], "default_payment_method": method}
        )
    process_all_events(double)
    assert not StripeEvent.objects.exclude(status="processed").exists()
    foreign = {event.id for event in double.events() if foreign_id in webhook_body(event).decode()}
    outcomes = StripeEvent.objects.filter(stripe_event_id__in=foreign, type__in=["invoice.paid"])
    assert list(outcomes.values_list("outcome", flat=True)) == ["not-ours"] * 2
    assert [payout.user for payout in Payout.objects.all()] == [payer.user]
    assert_no_findings(double)


def test_a_price_without_an_amount_can_be_read(amount: int) -> None:
    now = int(datetime.now(UTC).timestamp())
    for price, wanted in ((amount, amount), (None, 0)):
        subscription = _subscription(now, price)
        items = subscription["items"].data
        state = objects.subscription_state(subscription, items=items, product_id="prod_1")
        assert (state.amount_minor, state.subscription_id) == (wanted, "sub_1")


def _subscription(now: int, unit_amount: int | None) -> Any:
    item = SimpleNamespace(
        id="si_1",
        price=SimpleNamespace(unit_amount=unit_amount, product="prod_1"),
        current_period_start=now,
        current_period_end=now + 86_400,
    )

    class StripeObject(SimpleNamespace):
        def __getitem__(self, name: str) -> Any:
            return SimpleNamespace(data=[item])

    return StripeObject(
        id="sub_1", customer="cus_1", status="active", currency="usd", cancel_at_period_end=False,
        ended_at=None, latest_invoice=None,
    )  # fmt: skip


def test_an_invoice_is_paid_out_by_beat_once_its_customer_is_stored(
    fake: FakeBilling, user: User, amount: int
) -> None:
    payer = Payer(fake, user).with_card()
    payer.upsert(amount)
    customer = payer.customer
    identifier = customer.stripe_customer_id
    payer.user.subscriptions.all().delete()
    customer.delete()
    row = receive_event(next(body for body in fake.events if b"invoice.paid" in body), now=fake.now())
    assert events.process(event_id=row.pk, now=fake.now())
    row.refresh_from_db()
    assert row.outcome == "not-ours"
    type(customer).objects.create(user=user, stripe_customer_id=identifier)
    assert repairs.pay_out_missed_invoices(now=fake.now()) == 1
    assert payer.balance == payer.payout.credits
