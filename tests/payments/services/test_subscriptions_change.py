"""upsertSubscription for a user with an active subscription."""

import pytest

from payments.errors import CardDeclined, CurrencyFixed
from payments.models import BillingOperation, Subscription
from tests.payments.conftest import Refused
from tests.payments.payers import Payer
from tests.payments.stripe_accounts import DoubleAccount
from tests.payments.webhook_events import process_all_events

pytestmark = pytest.mark.django_db
DAY = 86_400


def test_the_same_values_change_nothing_at_stripe(double: DoubleAccount, payer: Payer, amount: int) -> None:
    first = payer.upsert(amount)
    with double.frozen_log() as orders:
        again = payer.upsert(amount)
    assert orders == []
    assert again == first
    assert BillingOperation.objects.filter(kind="update-subscription").count() == 0


def test_another_amount_replaces_the_one_item_and_is_paid_from_the_next_period(
    double: DoubleAccount, payer: Payer, amount: int
) -> None:
    made = payer.upsert(amount)
    with double.frozen_log() as orders:
        changed = payer.upsert(2 * amount)
    (order,) = orders
    (item,) = order.params["items"].values()
    assert item["id"] == made.stripe_item_id
    assert order.params["proration_behavior"] == "none"
    assert order.idempotency_key == str(BillingOperation.objects.get(kind="update-subscription").pk)
    assert (changed.pk, changed.amount_minor) == (made.pk, 2 * amount)
    invoices = double.v1.invoices.list({"subscription": made.stripe_subscription_id}).data
    assert [invoice.amount_paid for invoice in invoices] == [amount]
    double.pass_time(32 * DAY)
    invoices = double.v1.invoices.list({"subscription": made.stripe_subscription_id}).data
    assert [invoice.amount_paid for invoice in invoices] == [2 * amount, amount]
    assert len(invoices[0].lines.data) == 1
    assert len(double.v1.subscriptions.retrieve(made.stripe_subscription_id)["items"].data) == 1


def test_many_changes_leave_one_item_and_the_last_amount(
    double: DoubleAccount, payer: Payer, amount: int
) -> None:
    payer.upsert(amount)
    for step in range(1, 5):
        payer.upsert(amount + step)
    subscription = double.v1.subscriptions.retrieve(payer.subscription.stripe_subscription_id)
    assert [item.price.unit_amount for item in subscription["items"].data] == [amount + 4]


def test_cancellation_with_the_period_is_switched_on_and_off_again(
    double: DoubleAccount, payer: Payer, amount: int
) -> None:
    made = payer.upsert(amount)
    for cancels in (True, False):
        changed = payer.upsert(amount, cancels=cancels)
        assert (changed.pk, changed.cancels_at_period_end) == (made.pk, cancels)
        subscription = double.v1.subscriptions.retrieve(made.stripe_subscription_id)
        assert (subscription.cancel_at_period_end, subscription.status) == (cancels, "active")
    double.pass_time(32 * DAY)
    assert double.v1.subscriptions.retrieve(made.stripe_subscription_id).status == "active"


def test_a_request_without_cancellation_resumes_a_cancelled_subscription(
    double: DoubleAccount, payer: Payer, amount: int
) -> None:
    payer.upsert(amount)
    assert payer.cancel(immediately=False).cancels_at_period_end
    assert not payer.upsert(amount).cancels_at_period_end
    assert Subscription.objects.count() == 1


def test_another_currency_needs_another_subscription(payer: Payer, amount: int, refused: Refused) -> None:
    payer.upsert(amount, "usd")
    payer.account.pass_time(1)
    payer.upsert(amount, "usd")
    before = Subscription.objects.values().get()
    with pytest.raises(CurrencyFixed) as refusal:
        payer.upsert(amount, "eur")
    assert refusal.value.members == {"currency": "usd"}
    assert {**Subscription.objects.values().get(), "synced_at": None} == {**before, "synced_at": None}
    assert BillingOperation.objects.filter(kind="update-subscription").count() == 0


def test_a_subscription_that_ended_at_stripe_meanwhile_is_created_anew(
    double: DoubleAccount, payer: Payer, amount: int
) -> None:
    first = payer.upsert(amount)
    double.v1.subscriptions.cancel(first.stripe_subscription_id)
    second = payer.upsert(amount)
    assert second.pk != first.pk
    first.refresh_from_db()
    assert (first.status, second.status) == ("canceled", "active")
    assert first.ended_at is not None


def test_a_past_due_subscription_takes_a_new_amount_and_tells_that_the_card_is_declined(
    double: DoubleAccount, payer: Payer, amount: int
) -> None:
    made = payer.upsert(amount)
    (card,) = double.v1.payment_methods.list({"customer": payer.customer.stripe_customer_id}).data
    double.decline_from_now(card.id, "insufficient_funds")
    double.pass_time(32 * DAY)
    process_all_events(double)
    made.refresh_from_db()
    assert made.status == "past_due"
    with pytest.raises(CardDeclined) as refusal:
        payer.upsert(amount + 100)
    assert refusal.value.members == {"declineCode": "insufficient_funds"}
    made.refresh_from_db()
    assert (made.status, made.amount_minor) == ("past_due", amount + 100)
