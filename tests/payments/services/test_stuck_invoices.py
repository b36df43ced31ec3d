"""An invoice that Stripe will not collect by itself: the owner, staff and reconciliation see it, with the way out."""

from datetime import timedelta
from typing import Any

import pytest

from credits.models import ReconciliationRun
from payments.errors import AddressRequired, BillingRefused
from payments.models import Subscription
from payments.services import reconciliation, standing
from payments.services.standing import NextStep, SubscriptionReport
from payments.stripe import get_billing_client, set_billing_client
from tests.payments.buying import buy
from tests.payments.dashboard import Clerk
from tests.payments.payers import Payer
from tests.payments.reconciling import assert_no_findings
from tests.payments.stripe_accounts import DoubleAccount
from tests.payments.webhook_events import process_all_events

pytestmark = pytest.mark.django_db
DAY = 86_400
PLACE = {"address": {"country": "DE"}}


@pytest.fixture
def taxed(double: DoubleAccount, payer: Payer, amount: int, settings: Any) -> Payer:
    """A subscriber with automatic tax whose address was removed at Stripe, after the renewal that it stopped."""
    settings.STRIPE_AUTOMATIC_TAX = True
    set_billing_client(None)
    _place(double, payer, PLACE)
    payer.upsert(amount)
    process_all_events(double)
    _place(double, payer, {"address": ""})
    double.pass_time(32 * DAY)
    process_all_events(double)
    return payer


def _place(double: DoubleAccount, payer: Payer, address: dict[str, Any]) -> None:
    double.v1.customers.update(payer.customer.stripe_customer_id, address)


def _report(payer: Payer) -> SubscriptionReport:
    return standing.report(user=payer.user, now=payer.account.now())


def _rules(double: DoubleAccount) -> list[tuple[str, str]]:
    run = reconciliation.reconcile(now=double.now(), minutes=0)
    assert isinstance(run, ReconciliationRun)
    return [(finding["rule"], finding["have"]) for finding in run.findings]


def test_a_renewal_without_an_address_is_told_to_its_owner_to_staff_and_to_reconciliation(
    double: DoubleAccount, taxed: Payer
) -> None:
    report = _report(taxed)
    assert (report.subscription.status, report.next_step) == ("active", NextStep.COMPLETE_ADDRESS)
    assert report.subscription.latest_invoice == "address-missing"
    assert "waits for the customer's address" in report.subscription.outlook()
    ((rule, have),) = _rules(double)
    assert rule == "invoice-stuck"
    assert "address" in have
    assert len(taxed.payouts) == 1


def test_a_card_with_the_address_collects_the_renewal_that_waited_for_it(
    double: DoubleAccount, taxed: Payer
) -> None:
    page = get_billing_client().create_card_page(
        customer_id=taxed.customer.stripe_customer_id, return_url="https://wallet.example/back"
    )
    assert page
    _place(double, taxed, PLACE)
    double.capture(taxed.customer.stripe_customer_id)
    process_all_events(double)
    assert _report(taxed).next_step == NextStep.NOTHING
    assert len(taxed.payouts) == 2
    assert_no_findings(double)


def test_subscribing_again_names_the_address_and_afterwards_collects_the_renewal(
    double: DoubleAccount, taxed: Payer, amount: int
) -> None:
    with pytest.raises(AddressRequired):
        taxed.upsert(amount)
    assert Subscription.objects.get().latest_invoice == "address-missing"
    _place(double, taxed, PLACE)
    taxed.upsert(amount)
    process_all_events(double)
    assert len(taxed.payouts) == 2


def test_a_first_purchase_without_an_address_leaves_nothing_behind_and_works_with_one(
    double: DoubleAccount, payer: Payer, settings: Any, amount: int
) -> None:
    settings.STRIPE_AUTOMATIC_TAX = True
    set_billing_client(None)
    for ask in (lambda: buy(payer, amount), lambda: payer.upsert(amount)):
        with pytest.raises(AddressRequired, match="full address"):
            ask()
    assert not double.rows("/v1/invoices")
    _place(double, payer, PLACE)
    assert buy(payer, amount).status == "paid"
    assert payer.upsert(amount).status == "active"


@pytest.mark.parametrize("days", [3, 5])
def test_waiting_has_a_limit_of_time(double: DoubleAccount, running: Payer, days: int) -> None:
    subscription = running.subscription
    Subscription.objects.filter(pk=subscription.pk).update(
        latest_invoice="waiting", current_period_start=double.now() - timedelta(days=days)
    )
    subscription.refresh_from_db()
    is_late = days > 4
    assert (standing._next_step(subscription, None, now=double.now()) == NextStep.PAY) is is_late
    assert ("waits to be collected" in subscription.outlook()) is is_late
    assert ("invoice-stuck" in [rule for rule, _ in _rules(double)]) is is_late


def test_a_subscription_that_sends_invoices_says_so_and_its_invoice_can_be_paid(
    double: DoubleAccount, running: Payer, clerk: Clerk, amount: int
) -> None:
    clerk.change(
        running.subscription.stripe_subscription_id, collection_method="send_invoice", days_until_due=30
    )
    double.pass_time(32 * DAY)
    process_all_events(double)
    report = _report(running)
    assert (report.subscription.is_invoiced, report.next_step) == (True, NextStep.PAY_INVOICE)
    assert "by invoices that the owner pays" in report.subscription.outlook()
    assert _rules(double) == []
    running.upsert(amount)
    process_all_events(double)
    assert _report(running).next_step == NextStep.NOTHING
    assert len(running.payouts) == 2


def test_a_yearly_price_is_reported_as_such_and_not_changed_as_if_it_were_monthly(
    double: DoubleAccount, payer: Payer, clerk: Clerk, amount: int
) -> None:
    clerk.subscribe_to(payer, {"price_data": {**clerk.price(12 * amount), "recurring": {"interval": "year"}}})
    process_all_events(double)
    report = _report(payer)
    assert (report.subscription.interval, report.subscription.amount_minor) == ("year", 12 * amount)
    assert "by the year" in report.subscription.outlook()
    with pytest.raises(BillingRefused, match="by the year"):
        payer.upsert(amount)
    assert payer.cancel(immediately=False).cancels_at_period_end
