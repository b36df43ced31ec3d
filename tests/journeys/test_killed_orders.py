"""A web process that is killed between two steps of a payment request charges nobody twice and forgets nothing."""

import random

import pytest

from tests.journeys.billing import Payer, unanswered
from tests.journeys.people import Person
from tests.journeys.stack import Stack
from tests.journeys.waiting import until

pytestmark = pytest.mark.journey


@pytest.fixture
def newcomer(stack: Stack, person: Person) -> Payer:
    """Somebody whom the provider does not know."""
    return Payer(person, stack, amount=random.randint(500, 50_000))


@pytest.fixture
def payer(newcomer: Payer) -> Payer:
    """Somebody with a card."""
    return newcomer.with_card()


def test_a_customer_outlives_the_process_that_was_killed_before_it_asked(
    stack: Stack, newcomer: Payer
) -> None:
    with stack.frozen(stack.provider), unanswered(newcomer.create_customer):
        until("the order is written down", lambda: newcomer.records.pending(newcomer.profile))
        stack.kill(stack.web)
        # What it may have sent is gone with the other end.
        stack.kill(stack.provider)
    stack.restart(stack.provider)
    assert newcomer.customers() == []

    stack.restart(stack.web)
    newcomer.resumed()

    newcomer.assert_one_customer()


def test_a_customer_outlives_the_process_that_was_killed_before_it_heard_the_answer(
    stack: Stack, newcomer: Payer
) -> None:
    stack.provider.controls.timeout_after_commit(6, method="POST", path="/v1/customers")
    with unanswered(newcomer.create_customer):
        until("the customer is made", newcomer.customers)
        stack.kill(stack.web)
    assert newcomer.records.customers(newcomer.profile) == []

    stack.restart(stack.web)
    newcomer.resumed()

    newcomer.assert_one_customer()


def test_a_customer_outlives_the_process_that_was_killed_before_it_noted_the_answer(
    stack: Stack, newcomer: Payer
) -> None:
    with newcomer.records.unwritable("payments_customer") as lock, unanswered(newcomer.create_customer):
        until("the row waits", lambda: lock.is_waited_for)
        assert len(newcomer.customers()) == 1
        stack.kill(stack.web)
    assert newcomer.records.customers(newcomer.profile) == []

    stack.restart(stack.web)
    newcomer.resumed()

    newcomer.assert_one_customer()


def test_a_subscription_outlives_the_process_that_was_killed_before_it_asked(
    stack: Stack, payer: Payer
) -> None:
    payer.hear_all()
    (customer,) = payer.customers()
    card, records = f"/v1/customers/{customer.id}", payer.records
    stack.provider.controls.slow(6, method="GET", path=card)
    with unanswered(payer.upsert):
        until("it looks for the card", lambda: None in _statuses(stack, card))
        with records.unreadable("payments_subscription") as lock:
            until("the order is written down", lambda: records.pending(payer.profile) and lock.is_waited_for)
            stack.kill(stack.web)
    assert payer.subscriptions() == []

    stack.restart(stack.web)
    payer.resumed()

    payer.assert_settled()


def _statuses(stack: Stack, path: str) -> list[int | None]:
    return [request.status for request in stack.provider.controls.requests("GET", path)]


def test_a_subscription_outlives_the_process_that_was_killed_before_it_heard_the_answer(
    stack: Stack, payer: Payer
) -> None:
    stack.provider.controls.hold()
    stack.provider.controls.timeout_after_commit(6, method="POST", path="/v1/subscriptions")
    with unanswered(payer.upsert):
        until("the subscription is made", payer.subscriptions)
        stack.kill(stack.web)
    assert payer.records.subscriptions(payer.profile) == []

    stack.restart(stack.web)
    payer.resumed()

    assert len(payer.orders("/v1/subscriptions")) >= 2
    stack.provider.controls.release("shuffled")
    payer.assert_settled()


def test_a_subscription_outlives_the_process_that_was_killed_before_it_noted_the_answer(
    stack: Stack, payer: Payer
) -> None:
    stack.provider.controls.hold()
    with payer.records.locked_customer(payer.profile) as lock, unanswered(payer.upsert):
        until("the answer waits to be written", lambda: lock.is_waited_for)
        assert len(payer.subscriptions()) == 1
        stack.kill(stack.web)
    assert payer.records.subscriptions(payer.profile) == []

    stack.restart(stack.web)
    payer.resumed()

    stack.provider.controls.release("reversed")
    payer.assert_settled()


def test_a_change_outlives_the_process_that_was_killed_before_it_heard_the_answer(
    stack: Stack, payer: Payer
) -> None:
    payer.subscribed()
    first, (subscription,) = payer.amount, payer.subscriptions()
    stack.provider.controls.hold()
    path = f"/v1/subscriptions/{subscription.id}"
    stack.provider.controls.timeout_after_commit(6, method="POST", path=path)
    payer.amount = 2 * first
    with unanswered(payer.upsert):
        until("the amount is changed", lambda: _amounts(payer) == [2 * first])
        stack.kill(stack.web)
    (stored,) = payer.records.subscriptions(payer.profile)
    assert stored.amount_minor == first

    stack.restart(stack.web)
    payer.resumed()

    stack.provider.controls.release()
    assert payer.upsert().status == 200
    payer.amount = first
    payer.assert_one_subscription(amount=2 * first)
    payer.assert_paid_out_once()
    orders = [
        request for request in stack.provider.controls.requests("POST", path) if "items" in request.params
    ]
    assert len({order.idempotency_key for order in orders}) == 1


def _amounts(payer: Payer) -> list[int]:
    (subscription,) = payer.subscriptions()
    return [item.price.unit_amount for item in subscription["items"].data]


def test_an_end_outlives_the_process_that_was_killed_before_it_heard_the_answer(
    stack: Stack, payer: Payer
) -> None:
    payer.subscribed()
    (subscription,) = payer.subscriptions()
    stack.provider.controls.hold()
    path = f"/v1/subscriptions/{subscription.id}"
    stack.provider.controls.timeout_after_commit(6, method="DELETE", path=path)
    with unanswered(payer.cancel):
        until("it has ended", lambda: payer.subscriptions()[0].status == "canceled")
        stack.kill(stack.web)
    assert payer.records.subscriptions(payer.profile)[0].status == "active"

    stack.restart(stack.web)
    payer.resumed()

    assert [request.status for request in payer.records.subscriptions(payer.profile)] == ["canceled"]
    assert payer.cancel().status == 404
    assert [request.id for request in payer.subscriptions()] == [subscription.id]
    payer.assert_paid_out_once()
