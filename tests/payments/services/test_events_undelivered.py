"""Webhooks that never arrive: beat alone finds what happened, and late deliveries change nothing more."""

import json
from datetime import timedelta

import pytest

from payments import tasks
from payments.models import Payout, StripeEvent
from payments.services import events, synchronisation
from payments.services.reconciliation import repairs
from payments.services.snapshots import _FETCHERS, EVENT_TYPES
from tests.payments.faults import fault_injection
from tests.payments.payers import Payer
from tests.payments.rows import final_rows
from tests.payments.stripe_accounts import DoubleAccount
from tests.payments.webhook_events import process_all_events, process_events, webhook_body

pytestmark = pytest.mark.django_db
DAY = 86_400


@pytest.fixture
def month(double: DoubleAccount, payer: Payer, amount: int) -> list[bytes]:
    """A month and a renewal of which nothing has arrived; the bodies of what was lost."""
    double.lose_deliveries()
    payer.upsert(amount)
    lost = [webhook_body(event) for event in double.events()]
    # Without a response to `invoice.created`, Stripe finalizes a renewal 72 hours later.
    double.pass_time(35 * DAY)
    return lost + [webhook_body(event) for event in double.events()]


def test_beat_alone_pays_out_once_and_replayed_deliveries_change_nothing(
    double: DoubleAccount, payer: Payer, amount: int, month: list[bytes]
) -> None:
    assert not Payout.objects.exists()
    assert repairs.pay_out_missed_invoices(now=double.now()) == 2
    first, second = payer.payouts
    assert first.period_end == second.period_start
    assert first.amount_minor == second.amount_minor == amount
    assert payer.balance == first.credits + second.credits
    assert payer.quota().total == second.credits
    # The second beat, and the next hour's.
    assert [repairs.pay_out_missed_invoices(now=double.now()) for _ in range(2)] == [0, 0]
    before = final_rows(), payer.balance
    process_events(month, now=double.now())
    process_events(reversed(month), now=double.now())
    assert (final_rows(), payer.balance) == before
    assert not StripeEvent.objects.exclude(status="processed").exists()


def test_undelivered_events_are_fetched_and_processed(
    double: DoubleAccount, payer: Payer, month: list[bytes]
) -> None:
    fetched = events.fetch_undelivered(now=double.now())
    assert fetched == StripeEvent.objects.count() >= 2
    assert events.fetch_undelivered(now=double.now()) == 0
    events.process_due(now=double.now())
    assert not StripeEvent.objects.exclude(status="processed").exists()
    assert payer.payout.period_start == payer.subscription.current_period_start


def test_each_subscribed_event_type_has_a_fetcher() -> None:
    prefixes = tuple(prefix for prefix, _ in _FETCHERS)
    assert [name for name in EVENT_TYPES if not name.startswith(prefixes)] == []


def test_an_undelivered_event_of_each_family_is_fetched_and_applied(
    double: DoubleAccount, payer: Payer, amount: int
) -> None:
    payer.upsert(amount)
    process_all_events(double)
    earlier, first = list(StripeEvent.objects.values_list("pk", flat=True)), payer.payout
    double.lose_deliveries()
    double.pass_time(35 * DAY)
    double.capture(payer.customer.stripe_customer_id)
    double.refund(first.stripe_payment_intent_id, 3)
    double.dispute(first.stripe_payment_intent_id, 4)
    double.v1.subscriptions.update(payer.subscription.stripe_subscription_id, {"cancel_at_period_end": True})

    events.fetch_undelivered(now=double.now())
    events.process_due(now=double.now())

    new = StripeEvent.objects.exclude(pk__in=earlier)
    assert set(new.values_list("outcome", flat=True)) == {"applied"}
    assert set(new.values_list("type", flat=True)) >= {
        "invoice.paid",
        "customer.subscription.updated",
        "setup_intent.succeeded",
        "refund.created",
        "charge.dispute.created",
    }
    assert len(payer.payouts) == 2
    assert first.credits_taken_back() == first.credits * 7 // amount
    assert payer.subscription.cancels_at_period_end


def test_the_tasks_of_beat_recover_lost_webhooks(double: DoubleAccount, payer: Payer, amount: int) -> None:
    double.lose_deliveries()
    payer.upsert(amount)
    double.v1.subscriptions.update(payer.subscription.stripe_subscription_id, {"cancel_at_period_end": True})
    tasks.catch_up()
    tasks.process_due_events()
    tasks.resume_operations()
    tasks.refresh_subscriptions()
    assert len(payer.payouts) == 1
    assert payer.subscription.cancels_at_period_end
    (event,) = StripeEvent.objects.filter(type="invoice.paid")
    assert json.loads(bytes(event.raw_body))["id"] == event.stripe_event_id


def test_a_refresh_stores_a_cancellation_made_at_stripe(
    double: DoubleAccount, payer: Payer, amount: int
) -> None:
    payer.upsert(amount)
    process_all_events(double)
    double.v1.subscriptions.cancel(payer.subscription.stripe_subscription_id)
    assert synchronisation.refresh_subscriptions(now=double.now()) == 1
    assert payer.subscription.status == "canceled"
    assert payer.quota(double.now() + timedelta(seconds=1)).reset_date == -1
    assert synchronisation.refresh_subscriptions(now=double.now()) == 0


def test_an_invoice_older_than_forty_days_is_not_searched_for(
    double: DoubleAccount, payer: Payer, amount: int
) -> None:
    payer.upsert(amount, cancels=True)
    double.pass_time(41 * DAY)
    assert repairs.pay_out_missed_invoices(now=double.now()) == 0
    assert repairs.pay_out_missed_invoices(now=double.now() - timedelta(days=2)) == 1


def test_a_paid_out_invoice_is_not_read_again(double: DoubleAccount, payer: Payer, amount: int) -> None:
    payer.upsert(amount)
    process_all_events(double)
    with fault_injection() as client:
        repairs.pay_out_missed_invoices(now=double.now())
    assert client.calls == {"paid_invoices_since": 1}
