"""cancelSubscription: at once, with the period, twice, and where there is nothing to cancel."""

from datetime import timedelta

import pytest

from credits.models import Allowance
from payments.models import BillingOperation, Subscription
from tests.payments.payers import Payer
from tests.payments.stripe_accounts import DoubleAccount
from tests.payments.webhook_events import process_all_events

pytestmark = pytest.mark.django_db
DAY = 86_400


def test_an_immediate_cancellation_ends_subscription_and_allowance_and_takes_no_credits(
    double: DoubleAccount, running: Payer
) -> None:
    balance = running.balance
    ended = running.cancel(immediately=True)
    assert (ended.status, ended.renews()) == ("canceled", False)
    assert ended.ended_at is not None
    assert abs(ended.ended_at - double.now()) < timedelta(minutes=1)
    quota = running.quota(ended.ended_at + timedelta(seconds=1))
    assert (quota.available, quota.total, quota.reset_date) == (balance, 0, -1)
    subscription = double.v1.subscriptions.retrieve(ended.stripe_subscription_id)
    assert subscription.status == "canceled"
    assert double.v1.refunds.list().data == []
    assert len(double.v1.invoices.list({"subscription": ended.stripe_subscription_id}).data) == 1


def test_a_cancellation_with_the_period_keeps_the_subscription_until_then(
    double: DoubleAccount, running: Payer
) -> None:
    kept = running.cancel(immediately=False)
    end = kept.current_period_end
    assert (kept.status, kept.cancels_at_period_end, kept.ended_at) == ("active", True, None)
    quota = running.quota(end - timedelta(seconds=1))
    assert (quota.total, quota.reset_date) == (running.payout.credits, int(end.timestamp()))
    quota = running.quota(end)
    assert (quota.total, quota.reset_date) == (0, -1)
    double.pass_time(32 * DAY)
    process_all_events(double)
    kept.refresh_from_db()
    assert (kept.status, kept.ended_at) == ("canceled", end)
    assert len(running.payouts) == 1
    assert running.quota().reset_date == -1


def test_a_subscription_that_already_ended_at_stripe_is_returned_as_ended(
    double: DoubleAccount, running: Payer
) -> None:
    double.v1.subscriptions.cancel(running.subscription.stripe_subscription_id)
    ended = running.cancel(immediately=False)
    assert (ended.status, ended.ended_at is None) == ("canceled", False)
    assert BillingOperation.objects.filter(kind="cancel-subscription").count() == 0


def test_late_events_of_an_ended_subscription_do_not_change_the_new_allowance(
    double: DoubleAccount, running: Payer, amount: int
) -> None:
    """Replayed events of the old one, and its refund, are about the old one."""
    old = running.payout
    running.cancel(immediately=True)
    double.pass_time(60)
    new = running.upsert(2 * amount)
    process_all_events(double)
    kept = Allowance.objects.values().get()
    assert (kept["credits"], kept["ends_at"]) == (running.payout.credits, new.current_period_end)
    double.refund(old.stripe_payment_intent_id)
    for event in double.events("invoice.paid", "customer.subscription.deleted"):
        double.controls.reissue(event.id)
    process_all_events(double)
    assert Allowance.objects.values().get() == kept
    assert Subscription.objects.count() == 2
    assert running.balance == running.payout.credits
