"""Money that goes back while nobody tells of it, or whose telling is lost here: beat follows it by night."""

from datetime import timedelta

import pytest

from payments import tasks
from payments.errors import BillingRefused
from payments.services import events
from payments.services.reconciliation import repairs
from payments.stripe import get_billing_client
from tests.factories import UserFactory
from tests.payments.mail import deliver_all
from tests.payments.meddling import meddling, once
from tests.payments.people import Payer
from tests.payments.rows import everything
from tests.payments.worlds import DoubleWorld

pytestmark = pytest.mark.django_db


def test_a_refund_whose_delivery_counts_as_taken_is_clawed_back_by_night(
    double: DoubleWorld, payer: Payer, amount: int
) -> None:
    payer.upsert(amount)
    deliver_all(double)
    part = amount // 3
    double.refund(payer.payout.stripe_payment_intent_id, part)
    assert events.fetch_undelivered(now=double.now()) == 0
    paid_out = payer.balance
    tasks.claw_back()
    assert payer.balance == paid_out - paid_out * part // amount
    before = everything()
    assert repairs.claw_back_missed_money(now=double.now()) == 0
    deliver_all(double)
    assert (everything()["CreditEntry"], everything()["Clawback"]) == (
        before["CreditEntry"],
        before["Clawback"],
    )


def test_what_was_taken_back_too_much_is_given_again_by_night(
    double: DoubleWorld, payer: Payer, amount: int
) -> None:
    payer.upsert(amount)
    deliver_all(double)
    paid_out = payer.balance
    refund = double.refund(payer.payout.stripe_payment_intent_id)
    assert repairs.claw_back_missed_money(now=double.now()) == 1
    assert payer.balance == 0
    double.fail_refund(refund)
    assert repairs.claw_back_missed_money(now=double.now()) == 1
    assert payer.balance == paid_out


def test_a_dispute_is_looked_for_over_half_a_year_and_of_our_own_payments_alone(
    double: DoubleWorld, payer: Payer, amount: int
) -> None:
    payer.upsert(amount, cancels=True)
    deliver_all(double)
    double.dispute(payer.payout.stripe_payment_intent_id)
    stranger = double.v1.customers.create({}).id
    double.capture(stranger)
    get_billing_client().has_payment_method(customer_id=stranger)
    bill = double.controls.create_invoice(stranger, amount)
    payments = double.v1.invoice_payments.list({"invoice": bill["id"]}).data
    double.refund(payments[0].payment.payment_intent)
    with meddling() as client:
        assert repairs.claw_back_missed_money(now=double.now() + timedelta(days=181)) == 0
        assert repairs.claw_back_missed_money(now=double.now() + timedelta(days=179)) == 1
    assert client.asked == {"refunded_or_disputed_since": 2, "returned_money": 1}
    assert payer.balance == 0


def test_a_payment_that_cannot_be_followed_now_stands_in_the_way_of_no_other(
    double: DoubleWorld, payer: Payer, amount: int
) -> None:
    other = Payer(double, UserFactory.create()).with_card()
    for one in (payer, other):
        one.upsert(amount)
    deliver_all(double)
    for one in (payer, other):
        double.refund(one.payout.stripe_payment_intent_id)
    with meddling() as client:
        client.before["returned_money"] = once(_refuse)
        assert repairs.claw_back_missed_money(now=double.now()) == 1
    assert repairs.claw_back_missed_money(now=double.now()) == 1
    assert (payer.balance, other.balance) == (0, 0)


def _refuse() -> None:
    raise BillingRefused("Stripe refused the request.", reason="resource_missing")
