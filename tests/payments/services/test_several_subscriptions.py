"""Subscriptions that staff made at Stripe's dashboard beside the owner's: all are paid out, ended and healed."""

from typing import Any

import pytest

from payments.errors import NoSubscription
from payments.models import StripeEvent, Subscription
from payments.services import standing
from payments.services.reconciliation.findings import Rule
from tests.payments.dashboard import Clerk
from tests.payments.payers import Payer
from tests.payments.reconciling import assert_no_findings, findings
from tests.payments.stripe_accounts import DoubleAccount
from tests.payments.webhook_events import process_all_events

pytestmark = pytest.mark.django_db


def _live(double: DoubleAccount) -> list[Any]:
    return [row.id for row in double.v1.subscriptions.list().data]


def test_every_collected_invoice_of_ours_is_paid_out(
    double: DoubleAccount, running: Payer, clerk: Clerk, amount: int, rates: dict[str, int]
) -> None:
    second = clerk.subscribe(running, 2 * amount)
    process_all_events(double)
    assert not StripeEvent.objects.exclude(status="processed").exists()
    assert [(payout.amount_minor, payout.credits) for payout in running.payouts] == [
        (amount, amount * rates["usd"] // 100),
        (2 * amount, 2 * amount * rates["usd"] // 100),
    ]
    live = Subscription.objects.live().filter(user=running.user)
    assert set(live.values_list("stripe_subscription_id", flat=True)) == set(_live(double))
    assert second in _live(double)
    others = standing.report(user=running.user, now=double.now()).others
    assert [other.stripe_subscription_id for other in others] == [second]
    assert [finding["rule"] for finding in findings(double)] == [Rule.SUBSCRIPTIONS_TWO_LIVE]


def test_the_allowance_ends_with_the_paid_subscription_if_the_other_is_free(
    double: DoubleAccount, running: Payer, clerk: Clerk, amount: int
) -> None:
    free = running.subscription.stripe_subscription_id
    clerk.change(free, discounts=[{"coupon": clerk.coupon(100)}])
    double.pass_time(70 * 86_400)
    second = clerk.subscribe(running, 2 * amount)
    process_all_events(double)
    assert running.quota().total == running.payout.credits
    double.v1.subscriptions.cancel(second)
    process_all_events(double)
    assert Subscription.objects.live().get().stripe_subscription_id == free
    assert (running.quota().total, running.quota().reset_date) == (0, -1)
    assert_no_findings(double)


@pytest.mark.parametrize("told", ["by webhook", "not yet"])
def test_an_upsert_leaves_one_and_keeps_the_allowance(
    double: DoubleAccount, running: Payer, clerk: Clerk, amount: int, told: str
) -> None:
    clerk.subscribe(running, 2 * amount)
    if told == "by webhook":
        process_all_events(double)
    kept = running.payouts[0]
    row = running.upsert(amount)
    assert _live(double) == [row.stripe_subscription_id] == [kept.subscription.stripe_subscription_id]
    process_all_events(double)
    assert len(double.v1.invoices.list().data) == len(running.payouts) == 2
    quota = running.quota()
    assert (quota.total, quota.reset_date) == (kept.credits, int(kept.period_end.timestamp()))


@pytest.mark.parametrize(("told", "immediately"), [("by webhook", False), ("not yet", True)])
def test_a_cancellation_ends_all(
    double: DoubleAccount, running: Payer, clerk: Clerk, amount: int, told: str, immediately: bool
) -> None:
    clerk.subscribe(running, 2 * amount, quantity=3)
    if told == "by webhook":
        process_all_events(double)
    running.cancel(immediately=immediately)
    rows = double.v1.subscriptions.list({"status": "all"}).data
    assert [row.status for row in rows] == (["canceled"] * 2 if immediately else ["active"] * 2)
    assert all(row.cancel_at_period_end for row in rows) != immediately
    (quantity,) = {item.quantity for item in rows[0]["items"].data}
    assert quantity == 3
    double.pass_time(40 * 86_400)
    assert len(double.v1.charges.list().data) == 2
    process_all_events(double)
    with pytest.raises(NoSubscription):
        running.cancel(immediately=True)


def test_one_that_only_staff_made_is_the_owners(
    double: DoubleAccount, payer: Payer, clerk: Clerk, amount: int
) -> None:
    made = clerk.subscribe(payer, amount)
    assert payer.upsert(amount).stripe_subscription_id == made
    process_all_events(double)
    assert payer.balance == payer.payout.credits
    assert standing.report(user=payer.user, now=double.now()).paid_minor == amount
    assert len(double.v1.charges.list().data) == 1
