"""After a failed update the client checks whether it was made, and sends it again only if not."""

from typing import Any

import pytest

from payments.stripe import get_billing_client
from payments.stripe.client import SubscriptionState
from tests.payments.payers import Payer
from tests.payments.stripe_accounts import DoubleAccount

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("impatient")]
KEY = "the-key"
# Requests for a renewing subscription that costs `amount`: another amount, another end, or both.
CHANGES: dict[str, dict[str, Any]] = {
    "amount": {"amount_minor": 4_321, "cancels_at_period_end": False},
    "end": {"amount_minor": None, "cancels_at_period_end": True},
    "both": {"amount_minor": 4_321, "cancels_at_period_end": True},
}
each_change = pytest.mark.parametrize("change", CHANGES)


@pytest.fixture
def running(double: DoubleAccount, payer: Payer, amount: int) -> Payer:
    """A user with an active subscription."""
    payer.upsert(amount)
    return payer


def _path(running: Payer) -> str:
    return f"/v1/subscriptions/{running.subscription.stripe_subscription_id}"


def _update(running: Payer, change: str) -> SubscriptionState:
    stored = running.subscription
    return get_billing_client().update_subscription(
        subscription_id=stored.stripe_subscription_id,
        item_id=stored.stripe_item_id,
        currency=stored.currency,
        key=KEY,
        **CHANGES[change],
    )


def _assert_changed(double: DoubleAccount, running: Payer, state: SubscriptionState, change: str) -> None:
    wanted = CHANGES[change]
    subscription = double.v1.subscriptions.retrieve(running.subscription.stripe_subscription_id)
    (item,) = subscription["items"].data
    amount = wanted["amount_minor"] or running.subscription.amount_minor
    assert item.price.unit_amount == state.amount_minor == amount
    assert subscription.cancel_at_period_end == state.cancels_at_period_end == wanted["cancels_at_period_end"]


def _keys(double: DoubleAccount, running: Payer) -> list[str | None]:
    keys = {order.idempotency_key: None for order in double.posts(_path(running))}
    return list(keys)


@each_change
def test_an_update_that_was_made_is_found_and_not_sent_under_another_key(
    double: DoubleAccount, running: Payer, change: str
) -> None:
    double.controls.error_after_commit(method="POST", path=_path(running), saved=True)
    state = _update(running, change)
    _assert_changed(double, running, state, change)
    assert _keys(double, running) == [KEY]


@each_change
def test_an_update_that_was_not_made_is_sent_under_another_key(
    double: DoubleAccount, running: Payer, change: str
) -> None:
    double.controls.fail(500, method="POST", path=_path(running), saved=True)
    state = _update(running, change)
    _assert_changed(double, running, state, change)
    assert _keys(double, running) == [KEY, f"{KEY}:1"]
