"""Stripe embeds the first ten rows of a list in an object: the service reads the others, too."""

import random

import pytest

from payments.services import standing
from payments.services.reconciliation import repairs
from tests.payments.dashboard import Clerk
from tests.payments.payers import Payer
from tests.payments.stripe_accounts import DoubleAccount
from tests.payments.webhook_events import process_all_events

pytestmark = pytest.mark.django_db
HOUR = 3_600


@pytest.fixture
def open_invoice(double: DoubleAccount, payer: Payer, amount: int) -> str:
    """Return the open invoice of a second month, for which the card was declined; the card is fine again."""
    payer.upsert(amount)
    process_all_events(double)
    (card,) = double.v1.payment_methods.list({"customer": payer.customer.stripe_customer_id}).data
    double.decline_from_now(card.id, "insufficient_funds")
    end = payer.subscription.current_period_end
    double.controls.advance_to(int(end.timestamp()) + 2 * HOUR)
    process_all_events(double)
    double.decline_from_now(card.id, None)
    (invoice,) = double.v1.invoices.list({"status": "open"}).data
    return str(invoice.id)


def _payments(double: DoubleAccount, invoice: str) -> list[str]:
    rows = double.v1.invoice_payments.list({"invoice": invoice, "status": "paid", "limit": 100}).data
    return [str(row.payment.payment_intent) for row in rows]


def test_every_item_of_ours_is_reported_and_an_upsert_leaves_one(
    double: DoubleAccount, payer: Payer, clerk: Clerk, amount: int
) -> None:
    subscription = payer.upsert(amount).stripe_subscription_id
    further = random.sample(range(500, 5_000), 11)
    items = [{"price_data": clerk.price(one)} for one in further]
    clerk.change(subscription, *items, proration_behavior="none")
    process_all_events(double)
    assert payer.subscription.amount_minor == amount + sum(further)

    payer.upsert(amount)

    rows = double.v1.subscription_items.list({"subscription": subscription, "limit": 100}).data
    assert [(row.price.unit_amount, row.quantity) for row in rows] == [(amount, 1)]
    assert payer.subscription.amount_minor == amount


def test_our_item_behind_ten_of_other_products_is_ours(
    double: DoubleAccount, payer: Payer, clerk: Clerk, amount: int
) -> None:
    others = [{"price_data": clerk.price(900, product=f"hats-{number}")} for number in range(10)]
    made = clerk.subscribe_to(payer, *others, {"price_data": clerk.price(amount)})
    process_all_events(double)
    row = payer.subscription
    assert (row.stripe_subscription_id, row.amount_minor) == (made, amount)
    assert (payer.payout.amount_minor, payer.payout.other_minor) == (amount, 9_000)


def test_every_payment_of_an_invoice_is_known_and_its_refund_takes_back(
    double: DoubleAccount, payer: Payer, open_invoice: str, amount: int
) -> None:
    for _ in range(11):
        double.controls.pay_invoice_part(open_invoice, amount // 20)
    # The payment that is to collect the rest is the oldest of twelve.
    report = standing.report(user=payer.user, now=double.now())
    assert (report.decline_code, report.next_step) == ("insufficient_funds", "capture-card")
    double.v1.invoices.pay(open_invoice)
    process_all_events(double)
    payments = _payments(double, open_invoice)
    assert sorted(payer.payout.payment_ids()) == sorted(payments)
    assert len(payments) == 12

    double.refund(payments[-1])
    double.refund(payments[0])
    process_all_events(double)
    returned = sum(row.amount for row in double.v1.refunds.list().data)
    assert payer.payout.credits_taken_back() == payer.payout.credits * returned // amount > 0


def test_a_payout_has_all_payments_of_its_invoice_from_the_start(
    double: DoubleAccount, payer: Payer, open_invoice: str, amount: int
) -> None:
    double.controls.pay_invoice_part(open_invoice, amount // 3)
    double.v1.invoices.pay(open_invoice)
    assert repairs.pay_out_missed_invoices(now=double.now()) == 1
    payments = _payments(double, open_invoice)
    assert sorted(payer.payout.payment_ids()) == sorted(payments)
    assert len(payments) == 2
