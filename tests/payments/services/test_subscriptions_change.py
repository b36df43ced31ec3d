"""upsertSubscription for a user with an active subscription."""

import pytest

from payments.errors import CardDeclined
from payments.models import BillingOperation
from tests.payments.payers import Payer
from tests.payments.stripe_accounts import DoubleAccount
from tests.payments.webhook_events import process_all_events

pytestmark = pytest.mark.django_db
DAY = 86_400


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


def test_a_subscription_that_already_ended_at_stripe_is_created_again(
    double: DoubleAccount, payer: Payer, amount: int
) -> None:
    first = payer.upsert(amount)
    double.v1.subscriptions.cancel(first.stripe_subscription_id)
    second = payer.upsert(amount)
    assert second.pk != first.pk
    first.refresh_from_db()
    assert (first.status, second.status) == ("canceled", "active")
    assert first.ended_at is not None


def test_a_past_due_subscription_takes_a_new_amount_and_reports_the_declined_card(
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
