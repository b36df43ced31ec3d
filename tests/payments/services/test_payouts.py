"""One paid invoice, one payout: its credits, period and rate, by whichever event and however often reported."""

import random
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest
from django.db import transaction

from credits.models import Allowance, CreditEntry
from credits.services.reconciliation import find_differences
from payments.errors import RateMissing, UnknownSubscription
from payments.models import Payout, PayoutRate, StripeEvent, Subscription
from payments.services import events, payouts
from payments.services.reconciliation import repairs
from payments.services.snapshots import invoice_snapshot
from payments.stripe import get_billing_client
from payments.stripe.client import InvoiceState
from tests.database import erase, rewrite
from tests.payments.payers import Payer
from tests.payments.rows import all_rows
from tests.payments.stripe_accounts import DoubleAccount
from tests.payments.webhook_events import process_all_events, receive_event, webhook_body
from tests.threads import at_once


@pytest.fixture
def subscriber(double: DoubleAccount, payer: Payer, amount: int) -> Payer:
    """A user with a new subscription; no event of it is processed yet."""
    payer.upsert(amount)
    return payer


def _invoice(subscriber: Payer) -> InvoiceState:
    state = get_billing_client().retrieve_subscription(
        subscription_id=subscriber.subscription.stripe_subscription_id
    )
    return get_billing_client().retrieve_invoice(invoice_id=state.latest_invoice_id)


@pytest.mark.django_db
def test_a_payout_is_the_collected_amount_at_the_rate_in_force(
    double: DoubleAccount, subscriber: Payer, amount: int, rates: dict[str, int]
) -> None:
    process_all_events(double)
    (payout,), invoice = subscriber.payouts, _invoice(subscriber)
    assert payout.credits == amount * rates["usd"] // 100
    assert (payout.amount_minor, payout.currency) == (amount, "usd")
    assert (payout.stripe_invoice_id, payout.stripe_payment_intent_id) == (
        invoice.invoice_id,
        invoice.payment_intent_id,
    )
    assert (payout.period_start, payout.period_end) == (invoice.period_start, invoice.period_end)
    assert payout.subscription == subscriber.subscription
    entry = payout.entry
    assert (entry.amount, entry.source) == (payout.credits, "SUBSCRIBED_PAYOUT")
    assert entry.key == f"stripe:invoice:{invoice.invoice_id}"
    allowance = Allowance.objects.get()
    assert (allowance.credits, allowance.starts_at, allowance.ends_at, allowance.renews) == (
        payout.credits,
        payout.period_start,
        payout.period_end,
        True,
    )
    quota = subscriber.quota()
    assert (quota.available, quota.total) == (payout.credits, payout.credits)
    assert quota.reset_date == int(payout.period_end.timestamp())


@pytest.mark.django_db(transaction=True)
def test_sixteen_workers_with_repeated_and_renumbered_events_pay_out_once(
    double: DoubleAccount, subscriber: Payer
) -> None:
    (event,) = double.events("invoice.paid")
    for _ in range(3):
        double.controls.reissue(event.id)
    rows = [receive_event(webhook_body(event), now=double.now()) for event in double.events("invoice.paid")]
    assert len(rows) == 4
    calls = [partial(events.process, event_id=row.pk, now=double.now()) for row in rows * 4]
    results = at_once(random.sample(calls, len(calls)))
    assert sum(result is True for result in results) <= len(rows)
    events.process_due(now=double.now() + timedelta(hours=1))
    assert not StripeEvent.objects.exclude(status="processed").exists()
    assert Payout.objects.count() == CreditEntry.objects.count() == 1
    assert subscriber.balance == subscriber.payout.credits
    assert find_differences() == []


@pytest.mark.django_db(transaction=True)
def test_the_worker_and_two_concurrent_beats_pay_out_once(double: DoubleAccount, subscriber: Payer) -> None:
    (event,) = double.events("invoice.paid")
    row = receive_event(webhook_body(event), now=double.now())
    worker: Callable[[], int] = partial(events.process, event_id=row.pk, now=double.now())
    beat: Callable[[], int] = partial(repairs.pay_out_missed_invoices, now=double.now())
    at_once([worker, beat, beat])
    repairs.pay_out_missed_invoices(now=double.now())
    assert Payout.objects.count() == CreditEntry.objects.count() == 1
    assert subscriber.balance == subscriber.payout.credits


@pytest.mark.django_db(transaction=True)
def test_one_invoice_in_two_open_transactions_is_one_payout(double: DoubleAccount, subscriber: Payer) -> None:
    invoice = _invoice(subscriber)

    def apply() -> int:
        with transaction.atomic():
            payout = payouts.apply_paid_invoice(invoice=invoice, now=double.now())
            assert payout is not None
            return payout.pk

    results = at_once([apply] * 8)
    assert set(results) == {Payout.objects.get().pk}
    assert CreditEntry.objects.count() == 1


@pytest.mark.django_db
def test_the_rate_is_the_one_in_force_when_the_invoice_was_paid(
    double: DoubleAccount, subscriber: Payer, amount: int, rates: dict[str, int]
) -> None:
    paid_at = _invoice(subscriber).paid_at
    assert paid_at is not None
    for seconds, rate in ((-1, 777), (1, 999_999)):
        PayoutRate.objects.create(
            currency="usd", credits_per_major_unit=rate, valid_from=paid_at + timedelta(seconds=seconds)
        )
    double.pass_time(3600)
    process_all_events(double)
    assert subscriber.payout.credits == amount * 777 // 100
    assert subscriber.payout.rate.credits_per_major_unit == 777


@pytest.mark.django_db
def test_a_later_rate_does_not_change_existing_payouts(double: DoubleAccount, subscriber: Payer) -> None:
    process_all_events(double)
    before = Payout.objects.values().get()
    PayoutRate.objects.create(
        currency="usd", credits_per_major_unit=1, valid_from=datetime(2021, 1, 1, tzinfo=UTC)
    )
    (event,) = double.events("invoice.paid")
    double.controls.reissue(event.id)
    process_all_events(double)
    assert Payout.objects.values().get() == before


@pytest.mark.django_db
def test_without_a_rate_the_event_waits_for_one(double: DoubleAccount, subscriber: Payer) -> None:
    rates = list(PayoutRate.objects.filter(currency="usd"))
    erase(PayoutRate.objects.filter(currency="usd"))
    process_all_events(double)
    waiting = StripeEvent.objects.get(type="invoice.paid")
    assert (waiting.status, waiting.last_error[:12]) == ("failed", "rate-missing")
    assert (subscriber.balance, Payout.objects.count()) == (0, 0)
    with pytest.raises(RateMissing):
        payouts.apply_paid_invoice(invoice=_invoice(subscriber), now=double.now())
    PayoutRate.objects.bulk_create(rates)
    assert events.process_due(now=waiting.next_attempt_at) >= 1
    waiting.refresh_from_db()
    assert waiting.status == "processed"
    assert subscriber.balance == subscriber.payout.credits


@pytest.mark.django_db
def test_an_invoice_of_another_customers_subscription_is_not_paid_out(
    double: DoubleAccount, subscriber: Payer
) -> None:
    invoice = replace(_invoice(subscriber), customer_id="cus_of_somebody_else")
    with pytest.raises(UnknownSubscription):
        payouts.apply_paid_invoice(invoice=invoice, now=double.now())
    assert subscriber.balance == 0


NO_PERIOD_THAT_WAS_PAID: dict[str, dict[str, Any]] = {
    "a draft": {"status": "draft"},
    "open": {"status": "open"},
    "void": {"status": "void"},
    "given up": {"status": "uncollectible"},
    "paid with nothing": {"collected_minor": 0},
    "of another product": {"is_ours": False},
    "of no beginning": {"period_start": None},
    "of no end": {"period_end": None},
    "of the live mode": {"is_live": True},
}


@pytest.mark.django_db
def test_only_a_period_of_a_subscription_that_was_paid_here_is_paid_out(
    double: DoubleAccount, subscriber: Payer
) -> None:
    invoice, before = _invoice(subscriber), all_rows()
    for kind, changes in NO_PERIOD_THAT_WAS_PAID.items():
        with transaction.atomic():
            changed_invoice = replace(invoice, **changes)
            assert payouts.apply_paid_invoice(invoice=changed_invoice, now=double.now()) is None, kind
        assert all_rows() == before, kind
    with transaction.atomic():
        assert payouts.apply_paid_invoice(invoice=invoice, now=double.now()) is not None


@pytest.mark.django_db
def test_each_way_to_bill_a_period_is_paid_out(double: DoubleAccount, subscriber: Payer) -> None:
    invoice = _invoice(subscriber)
    for reason in ("subscription_create", "subscription_cycle", "subscription_update", "manual", ""):
        with transaction.atomic():
            changed_invoice = replace(invoice, billing_reason=reason)
            made = payouts.apply_paid_invoice(invoice=changed_invoice, now=double.now())
            assert made == subscriber.payout
            transaction.set_rollback(True)


@pytest.mark.django_db
def test_an_invoice_is_paid_out_without_any_other_event(double: DoubleAccount, subscriber: Payer) -> None:
    Subscription.objects.all().delete()
    (event,) = double.events("invoice.paid")
    row = receive_event(webhook_body(event), now=double.now())
    assert events.process(event_id=row.pk, now=double.now())
    assert subscriber.payout.subscription.status == "active"
    assert Allowance.objects.get().credits == subscriber.payout.credits


@pytest.mark.django_db
def test_an_invoice_worth_less_than_a_credit_is_not_paid_out(
    double: DoubleAccount, subscriber: Payer, amount: int
) -> None:
    rewrite(PayoutRate.objects.filter(currency="usd"), credits_per_major_unit=1)
    invoice = _invoice(subscriber)
    for collected, worth in ((99, None), (100, 1), (199, 1)):
        with transaction.atomic():
            payout = payouts.apply_paid_invoice(
                invoice=replace(invoice, collected_minor=collected, invoice_id=f"in_{collected}"),
                now=double.now(),
            )
            assert (payout.credits if payout else None) == worth
    assert invoice_snapshot(invoice).invoice == invoice
