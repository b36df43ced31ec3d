"""Other products on the same Stripe account, bought by our own customers: not read, changed, paid out or cancelled."""

import random
from contextlib import suppress
from typing import Any

import pytest

from payments.errors import BillingRefused, NoSubscription
from payments.models import Payout, StripeEvent, Subscription
from payments.services import deletion, operations, self_service
from payments.services.reconciliation import repairs
from payments.stripe import get_billing_client
from tests.payments.dashboard import Clerk
from tests.payments.faults import fault_injection, once
from tests.payments.payers import Payer
from tests.payments.reconciling import assert_no_findings
from tests.payments.stripe_accounts import DoubleAccount
from tests.payments.webhook_events import process_all_events

pytestmark = pytest.mark.django_db
HATS = "hats"


@pytest.fixture
def hats() -> int:
    """Return what hats cost."""
    return random.randint(501, 5_000)


def _without_times(subscription: Any) -> dict[str, Any]:
    shown: dict[str, Any] = subscription.to_dict()
    return {name: value for name, value in shown.items() if name != "latest_invoice"}


@pytest.mark.parametrize("ours", ["lives", "never was"])
def test_a_subscription_to_another_product_is_left_alone(
    double: DoubleAccount, payer: Payer, clerk: Clerk, amount: int, hats: int, ours: str
) -> None:
    if ours == "lives":
        payer.upsert(amount)
    theirs = clerk.subscribe(payer, hats, product=HATS)
    before = _without_times(double.v1.subscriptions.retrieve(theirs))
    process_all_events(double)
    assert not StripeEvent.objects.exclude(status="processed").exists()
    assert repairs.pay_out_missed_invoices(now=double.now()) == 0
    assert [payout.amount_minor for payout in payer.payouts] == ([] if ours == "never was" else [amount])
    assert not Subscription.objects.filter(stripe_subscription_id=theirs).exists()
    listed = self_service.invoices(user=payer.user, limit=9, after="", now=double.now()).invoices
    assert [row.total_minor for row in listed] == ([] if ours == "never was" else [amount])

    double.capture(payer.customer.stripe_customer_id)
    process_all_events(double)
    mine = payer.upsert(2 * amount)
    assert mine.stripe_subscription_id != theirs
    payer.cancel(immediately=True)
    with pytest.raises(NoSubscription):
        payer.cancel(immediately=False)
    assert _without_times(double.v1.subscriptions.retrieve(theirs)) == before
    process_all_events(double)
    assert_no_findings(double)


@pytest.fixture
def shared(double: DoubleAccount, payer: Payer, clerk: Clerk, amount: int, hats: int) -> str:
    """Return a subscription whose first item is another product, and whose second is ours."""
    made = clerk.subscribe_to(
        payer, {"price_data": clerk.price(hats, product=HATS)}, {"price_data": clerk.price(amount)}
    )
    process_all_events(double)
    return made


def test_our_item_is_found_by_its_product_and_its_part_is_paid_out(
    double: DoubleAccount, payer: Payer, shared: str, amount: int, hats: int, rates: dict[str, int]
) -> None:
    row = payer.subscription
    assert (row.stripe_subscription_id, row.amount_minor) == (shared, amount)
    payout = payer.payout
    assert (payout.amount_minor, payout.other_minor) == (amount, hats)
    assert payer.balance == payout.credits == amount * rates["usd"] // 100
    double.refund(payout.stripe_payment_intent_id)
    process_all_events(double)
    assert payer.balance == 0
    assert_no_findings(double)


def test_an_upsert_changes_our_item_alone(
    double: DoubleAccount, payer: Payer, clerk: Clerk, shared: str, amount: int, hats: int
) -> None:
    row = payer.upsert(2 * amount)
    assert (row.stripe_subscription_id, row.amount_minor) == (shared, 2 * amount)
    items = {item.price.product: item.price.unit_amount for item in clerk.items(shared)}
    assert sorted(items.values()) == sorted([hats, 2 * amount])
    assert items[HATS] == hats


def test_a_cancellation_removes_our_item_at_once_and_cannot_end_the_other_with_the_period(
    double: DoubleAccount, payer: Payer, clerk: Clerk, shared: str, hats: int
) -> None:
    with pytest.raises(BillingRefused) as refusal:
        payer.cancel(immediately=False)
    assert refusal.value.members["reason"] == "shared-subscription"
    assert payer.cancel(immediately=True).status == "canceled"
    (left,) = clerk.items(shared)
    assert (left.price.product, left.price.unit_amount) == (HATS, hats)
    assert double.v1.subscriptions.retrieve(shared).status == "active"
    double.pass_time(40 * 86_400)
    process_all_events(double)
    assert Payout.objects.count() == 1
    assert repairs.pay_out_missed_invoices(now=double.now()) == 0
    assert payer.quota().total == 0


@pytest.mark.parametrize("together", [True, False])
def test_a_deleted_account_leaves_the_customer_to_the_other_product(
    double: DoubleAccount, payer: Payer, clerk: Clerk, amount: int, hats: int, together: bool
) -> None:
    theirs = {"price_data": clerk.price(hats, product=HATS)}
    if together:
        clerk.subscribe_to(payer, theirs, {"price_data": clerk.price(amount)})
    else:
        payer.upsert(amount)
        clerk.subscribe_to(payer, theirs)
    process_all_events(double)
    customer = payer.customer.stripe_customer_id
    deletion.leave_stripe(payer.user, double.now())
    assert deletion.reason_to_wait(payer.user) == ""
    left = double.v1.customers.retrieve(customer)
    assert (left.description, left.metadata.to_dict()) == (None, {})
    (goes_on,) = double.v1.subscriptions.list({"customer": customer}).data
    assert [item.price.product for item in goes_on["items"].data] == [HATS]
    process_all_events(double)
    assert_no_findings(double)
    assert payer.customer.stripe_customer_id != customer


def test_a_subscription_that_lost_our_product_has_ended_for_us(
    double: DoubleAccount, payer: Payer, clerk: Clerk, shared: str, amount: int
) -> None:
    ours = payer.subscription.stripe_item_id
    clerk.change(shared, {"id": ours, "deleted": True}, proration_behavior="none")
    process_all_events(double)
    row = payer.subscription
    assert (row.status, row.amount_minor, row.ended_at is not None) == ("canceled", amount, True)
    assert payer.upsert(amount).stripe_subscription_id != shared
    assert not get_billing_client().retrieve_subscription(subscription_id=shared).is_ours


def test_cancelling_at_once_takes_our_part_out_of_the_renewal_that_also_bills_hats(
    double: DoubleAccount, payer: Payer, clerk: Clerk, amount: int, hats: int
) -> None:
    shared = clerk.subscribe_to(
        payer, {"price_data": clerk.price(amount)}, {"price_data": clerk.price(hats, product=HATS)}
    )
    process_all_events(double)
    gave = payer.balance
    double.controls.advance_to(int(payer.subscription.current_period_end.timestamp()) + 60)
    process_all_events(double)
    assert double.rows("/v1/invoices", status="draft")[0]["amount_due"] == amount + hats
    with fault_injection() as client:
        client.after["cancel_subscription"] = once(_fail)  # A repeat finds nothing left to remove.
        with suppress(ZeroDivisionError):
            payer.cancel(immediately=True)
    assert payer.cancel(immediately=True).status == "canceled"
    double.pass_time(2 * 3_600)
    process_all_events(double)
    collected = [row["amount_paid"] for row in double.rows("/v1/invoices", subscription=shared)]
    assert collected == [amount + hats, hats]
    assert payer.balance == gave
    operations.resume_abandoned(now=double.now())
    assert_no_findings(double)


def _fail() -> None:
    raise ZeroDivisionError
