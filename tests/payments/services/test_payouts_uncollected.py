"""Invoices that are marked paid although no money, or not all of it, has reached us."""

from typing import Any

import pytest

from credits.models import CreditEntry
from payments.models import Customer, Payout, StripeEvent
from payments.services.reconciliation import repairs
from tests.payments.dashboard import Clerk
from tests.payments.payers import Payer
from tests.payments.stripe_accounts import DoubleAccount
from tests.payments.webhook_events import process_all_events

pytestmark = pytest.mark.django_db
DAY = 86_400


def _subscribe_at_stripe(double: DoubleAccount, customer: Customer, amount: int) -> Any:
    """Begin a subscription at the dashboard, over any amount."""
    price = Clerk(double).price(amount)
    card = double.v1.payment_methods.list({"customer": customer.stripe_customer_id}).data[0].id
    return double.v1.subscriptions.create(
        {
            "customer": customer.stripe_customer_id,
            "items": [{"price_data": price}],
            "default_payment_method": card,
            "billing_mode": {"type": "flexible"},
        }
    )


def _assert_nothing_was_paid_out(double: DoubleAccount) -> None:
    process_all_events(double)
    assert repairs.pay_out_missed_invoices(now=double.now()) == 0
    assert not Payout.objects.exists()
    assert not CreditEntry.objects.exists()
    assert not StripeEvent.objects.exclude(status="processed").exists()


def _invoices(double: DoubleAccount) -> list[Any]:
    return list(double.v1.invoices.list({"limit": 100}).data)


def test_nothing_and_an_amount_below_the_minimum_charge_are_paid_and_not_paid_out(
    double: DoubleAccount, payer: Payer
) -> None:
    for cents in (0, 49):
        _subscribe_at_stripe(double, payer.customer, cents)
        invoice = _invoices(double)[0]
        assert (invoice.status, invoice.amount_paid, invoice.total) == ("paid", 0, cents)
    _assert_nothing_was_paid_out(double)


def test_an_amount_below_the_minimum_is_paid_out_with_the_month_that_collects_it(
    double: DoubleAccount, payer: Payer, rates: dict[str, int]
) -> None:
    _subscribe_at_stripe(double, payer.customer, 30)
    double.pass_time(32 * DAY)
    process_all_events(double)
    collected = [invoice.amount_paid for invoice in _invoices(double)]
    assert collected == [60, 0]
    assert (payer.payout.amount_minor, payer.payout.credits) == (60, 60 * rates["usd"] // 100)
    assert len(payer.payouts) == 1


def test_a_credit_balance_is_not_counted_as_collected(
    double: DoubleAccount, payer: Payer, amount: int, rates: dict[str, int]
) -> None:
    double.v1.customers.update(payer.customer.stripe_customer_id, {"balance": -(amount - 100)})
    payer.upsert(amount)
    process_all_events(double)
    assert (payer.payout.amount_minor, payer.payout.credits) == (100, rates["usd"])


def test_a_month_paid_from_a_credit_balance_is_not_paid_out(
    double: DoubleAccount, payer: Payer, amount: int
) -> None:
    double.v1.customers.update(payer.customer.stripe_customer_id, {"balance": -amount})
    assert payer.upsert(amount).status == "active"
    _assert_nothing_was_paid_out(double)


def test_an_invoice_paid_outside_of_stripe_is_not_paid_out(double: DoubleAccount, declined: Payer) -> None:
    (invoice,) = _invoices(double)
    double.pay_out_of_band(invoice.id)
    assert double.v1.invoices.retrieve(invoice.id).status == "paid"
    _assert_nothing_was_paid_out(double)
    assert declined.subscription.status == "active"


def test_an_invoice_paid_by_a_credit_note_is_not_paid_out(double: DoubleAccount, declined: Payer) -> None:
    (invoice,) = _invoices(double)
    double.controls.create_credit_note(invoice.id)
    assert double.v1.invoices.retrieve(invoice.id).status == "paid"
    _assert_nothing_was_paid_out(double)


def test_an_invoice_credited_in_part_is_paid_out_for_the_rest(
    double: DoubleAccount, declined: Payer, amount: int
) -> None:
    (invoice,) = _invoices(double)
    double.controls.create_credit_note(invoice.id, amount - 200)
    (card,) = double.v1.payment_methods.list({"customer": declined.customer.stripe_customer_id}).data
    double.controls.change_card(card.id, decline_code=None)
    declined.upsert(amount)
    process_all_events(double)
    assert declined.payout.amount_minor == 200


def test_a_voided_invoice_is_not_paid_out(double: DoubleAccount, declined: Payer) -> None:
    declined.cancel(immediately=True)
    (invoice,) = _invoices(double)
    assert invoice.status == "void"
    _assert_nothing_was_paid_out(double)


def test_a_failed_renewal_is_not_paid_out_until_it_is_paid(
    double: DoubleAccount, payer: Payer, amount: int
) -> None:
    payer.upsert(amount)
    process_all_events(double)
    (card,) = double.v1.payment_methods.list({"customer": payer.customer.stripe_customer_id}).data
    double.controls.change_card(card.id, decline_code="insufficient_funds")
    double.pass_time(32 * DAY)
    process_all_events(double)
    assert (payer.subscription.status, len(payer.payouts)) == ("past_due", 1)
    payer.with_card()
    process_all_events(double)
    assert (payer.subscription.status, len(payer.payouts)) == ("active", 2)
    assert payer.payouts[1].period_start == payer.payouts[0].period_end
