"""upsertSubscription for a user without a running subscription."""

import pytest
from django.conf import settings

from payments.errors import (
    BillingInProgress,
)
from payments.models import BillingOperation
from payments.stripe import get_billing_client
from tests.payments.conftest import Refused
from tests.payments.payers import Payer
from tests.payments.stripe_accounts import DoubleAccount

pytestmark = pytest.mark.django_db
SUBSCRIPTIONS = "/v1/subscriptions"


def test_a_new_subscription_is_stored_as_stripe_returns_it(
    double: DoubleAccount, payer: Payer, amount: int
) -> None:
    made = payer.upsert(amount, "eur")
    subscription = double.v1.subscriptions.retrieve(made.stripe_subscription_id)
    (item,) = subscription["items"].data
    assert (made.status, made.amount_minor, made.currency) == ("active", amount, "eur")
    assert (made.stripe_item_id, made.cancels_at_period_end, made.ended_at) == (item.id, False, None)
    assert int(made.current_period_start.timestamp()) == item.current_period_start
    assert int(made.current_period_end.timestamp()) == item.current_period_end
    assert (item.price.unit_amount, item.price.currency) == (amount, "eur")
    assert item.price.recurring.interval == "month"


def test_the_parameters_that_stripe_gets_for_a_new_subscription(
    double: DoubleAccount, payer: Payer, amount: int
) -> None:
    payer.upsert(amount, cancels=True)
    (order,) = double.posts(SUBSCRIPTIONS)
    operation = BillingOperation.objects.get(kind="create-subscription")
    assert order.idempotency_key == str(operation.pk)
    (item,) = order.params["items"].values()
    assert item["price_data"]["product"] == settings.STRIPE_PRODUCT_ID
    assert order.params["payment_behavior"] == "allow_incomplete"
    assert order.params["billing_mode"] == {"type": "flexible"}
    assert order.params["cancel_at_period_end"] == "true"
    assert order.params["metadata"] == {"operation": str(operation.pk)}
    assert (operation.status, operation.outcome) == ("done", payer.subscription.stripe_subscription_id)


def test_while_another_change_is_running_no_subscription_is_created(
    double: DoubleAccount, payer: Payer, amount: int, refused: Refused
) -> None:
    BillingOperation.objects.create(
        user=payer.user, kind="create-subscription", parameters={"other": "one"}, created_at=double.now()
    )
    # Making the captured card the default does not change a subscription.
    assert get_billing_client().has_payment_method(customer_id=payer.customer.stripe_customer_id)
    with refused(BillingInProgress) as refusal:
        payer.upsert(amount)
    assert refusal.value.retry_after == 2
