"""Refunds and disputes without a webhook: the nightly task claws them back."""

from datetime import timedelta

import pytest

from payments import tasks
from payments.errors import BillingRefused
from payments.services import events
from payments.services.reconciliation import repairs
from payments.stripe import get_billing_client
from tests.factories import UserFactory
from tests.payments.faults import fault_injection, once
from tests.payments.payers import Payer
from tests.payments.rows import all_rows
from tests.payments.stripe_accounts import DoubleAccount
from tests.payments.webhook_events import process_all_events

pytestmark = pytest.mark.django_db


def test_a_refund_marked_as_delivered_is_clawed_back_by_the_nightly_task(
    double: DoubleAccount, payer: Payer, amount: int
) -> None:
    payer.upsert(amount)
    process_all_events(double)
    part = amount // 3
    double.refund(payer.payout.stripe_payment_intent_id, part)
    assert events.fetch_undelivered(now=double.now()) == 0
    paid_out = payer.balance
    tasks.claw_back()
    assert payer.balance == paid_out - paid_out * part // amount
    before = all_rows()
    assert repairs.claw_back_missed_money(now=double.now()) == 0
    process_all_events(double)
    assert (all_rows()["CreditEntry"], all_rows()["Clawback"]) == (
        before["CreditEntry"],
        before["Clawback"],
    )


def test_credits_taken_for_a_refund_that_failed_are_given_again_by_the_nightly_task(
    double: DoubleAccount, payer: Payer, amount: int
) -> None:
    payer.upsert(amount)
    process_all_events(double)
    paid_out = payer.balance
    refund = double.refund(payer.payout.stripe_payment_intent_id)
    assert repairs.claw_back_missed_money(now=double.now()) == 1
    assert payer.balance == 0
    double.fail_refund(refund)
    assert repairs.claw_back_missed_money(now=double.now()) == 1
    assert payer.balance == paid_out


def test_disputes_of_the_last_half_year_of_our_own_payments_are_read(
    double: DoubleAccount, payer: Payer, amount: int
) -> None:
    payer.upsert(amount, cancels=True)
    process_all_events(double)
    double.dispute(payer.payout.stripe_payment_intent_id)
    foreign_id = double.v1.customers.create({}).id
    double.capture(foreign_id)
    get_billing_client().has_payment_method(customer_id=foreign_id)
    bill = double.controls.create_invoice(foreign_id, amount)
    payments = double.v1.invoice_payments.list({"invoice": bill["id"]}).data
    double.refund(payments[0].payment.payment_intent)
    with fault_injection() as client:
        assert repairs.claw_back_missed_money(now=double.now() + timedelta(days=181)) == 0
        assert repairs.claw_back_missed_money(now=double.now() + timedelta(days=179)) == 1
    assert client.calls == {
        "refunded_or_disputed_since": 2,
        "returned_money": 1,
        "credited_off_stripe": 1,
    }
    assert payer.balance == 0


def test_a_payment_that_cannot_be_read_holds_up_no_other(
    double: DoubleAccount, payer: Payer, amount: int
) -> None:
    other = Payer(double, UserFactory.create()).with_card()
    for one in (payer, other):
        one.upsert(amount)
    process_all_events(double)
    for one in (payer, other):
        double.refund(one.payout.stripe_payment_intent_id)
    with fault_injection() as client:
        client.before["returned_money"] = once(_refuse)
        assert repairs.claw_back_missed_money(now=double.now()) == 1
    assert repairs.claw_back_missed_money(now=double.now()) == 1
    assert (payer.balance, other.balance) == (0, 0)


def _refuse() -> None:
    raise BillingRefused("Stripe refused the request.", reason="resource_missing")
