"""After a fault the client looks for what was made: neither made again, nor believed where it was not."""

from typing import Any

import pytest

from payments.stripe import get_billing_client
from payments.stripe.client import SubscriptionState
from tests.payments.people import Payer
from tests.payments.worlds import DoubleWorld

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("impatient")]
KEY = "the-key"
# What is asked of a subscription that costs `amount` and goes on: another amount, another end, or both.
CHANGES: dict[str, dict[str, Any]] = {
    "amount": {"amount_minor": 4_321, "cancels_at_period_end": False},
    "end": {"amount_minor": None, "cancels_at_period_end": True},
    "both": {"amount_minor": 4_321, "cancels_at_period_end": True},
}
each_change = pytest.mark.parametrize("change", CHANGES)


@pytest.fixture
def running(double: DoubleWorld, payer: Payer, amount: int) -> Payer:
    """A user whose subscription runs."""
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


def _assert_changed(double: DoubleWorld, running: Payer, state: SubscriptionState, change: str) -> None:
    wanted = CHANGES[change]
    told = double.v1.subscriptions.retrieve(running.subscription.stripe_subscription_id)
    (item,) = told["items"].data
    amount = wanted["amount_minor"] or running.subscription.amount_minor
    assert item.price.unit_amount == state.amount_minor == amount
    assert told.cancel_at_period_end == state.cancels_at_period_end == wanted["cancels_at_period_end"]


def _keys(double: DoubleWorld, running: Payer) -> list[str | None]:
    found = {order.idempotency_key: None for order in double.posts(_path(running))}
    return list(found)


@each_change
def test_a_change_that_was_made_is_found_and_not_ordered_under_another_key(
    double: DoubleWorld, running: Payer, change: str
) -> None:
    double.controls.error_after_commit(method="POST", path=_path(running), saved=True)
    state = _update(running, change)
    _assert_changed(double, running, state, change)
    assert _keys(double, running) == [KEY]


@each_change
def test_a_change_that_was_not_made_is_not_believed_and_ordered_under_another_key(
    double: DoubleWorld, running: Payer, change: str
) -> None:
    double.controls.fail(500, method="POST", path=_path(running), saved=True)
    state = _update(running, change)
    _assert_changed(double, running, state, change)
    assert _keys(double, running) == [KEY, f"{KEY}:1"]
