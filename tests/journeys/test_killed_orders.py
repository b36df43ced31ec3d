"""
A web process that is killed between two steps of a payment request charges no user twice and forgets nothing.

One kill meets eight people, each at another step. To start the web server again takes longer than all that they do.
"""

import random
from collections.abc import Callable, Generator, Iterator
from functools import partial

import pytest

from tests.journeys.billing import CUSTOMERS, SUBSCRIPTIONS, Payer, unanswered
from tests.journeys.billing_records import BillingRecords
from tests.journeys.stack import Stack
from tests.journeys.waiting import side_by_side, until

pytestmark = pytest.mark.journey

Steps = Generator[None, None, None]
# Up to its first `yield` a scenario comes to the step at which the web server is killed, up to the second one it checks
# the rest; after that everything runs again, and abandoned work has been taken up.
Scenario = Callable[[Payer], Steps]
# Longer than all the scenarios take to come to their steps; the kill ends it.
_STUCK_SECONDS = 140


def a_customer_before_it_was_requested(payer: Payer) -> Steps:
    payer.double.controls.slow(_STUCK_SECONDS, method="POST", path=CUSTOMERS)
    with unanswered(payer.create_customer):
        until("the request is on its way", lambda: payer.orders(CUSTOMERS))
        yield
    assert payer.customers() == []
    yield
    payer.assert_one_customer()


def a_customer_before_the_response(payer: Payer) -> Steps:
    payer.double.controls.timeout_after_commit(_STUCK_SECONDS, method="POST", path=CUSTOMERS)
    with unanswered(payer.create_customer):
        until("the customer is made", payer.customers)
        yield
    assert payer.records.customers(payer.profile) == []
    yield
    payer.assert_one_customer()


def a_customer_before_the_response_was_stored(payer: Payer) -> Steps:
    with payer.records.unwritable("payments_customer") as lock, unanswered(payer.create_customer):
        until("the row waits", lambda: lock.is_waited_for)
        assert len(payer.customers()) == 1
        yield
    assert payer.records.customers(payer.profile) == []
    yield
    payer.assert_one_customer()


def a_subscription_before_it_was_requested(payer: Payer) -> Steps:
    payer.double.controls.slow(_STUCK_SECONDS, method="POST", path=SUBSCRIPTIONS)
    with unanswered(payer.upsert):
        until("the request is on its way", lambda: payer.orders(SUBSCRIPTIONS))
        yield
    assert payer.subscriptions() == []
    yield
    payer.assert_settled()


def a_subscription_before_the_response(payer: Payer) -> Steps:
    payer.double.controls.timeout_after_commit(_STUCK_SECONDS, method="POST", path=SUBSCRIPTIONS)
    with unanswered(payer.upsert):
        until("the subscription is made", payer.subscriptions)
        yield
    assert payer.records.subscriptions(payer.profile) == []
    yield
    assert len(payer.orders(SUBSCRIPTIONS)) >= 2
    payer.assert_settled()


def a_subscription_before_the_response_was_stored(payer: Payer) -> Steps:
    with payer.records.locked_customer(payer.profile) as lock, unanswered(payer.upsert):
        until("the answer waits to be written", lambda: lock.is_waited_for)
        assert len(payer.subscriptions()) == 1
        yield
    assert payer.records.subscriptions(payer.profile) == []
    yield
    payer.assert_settled()


def a_change_before_the_response(payer: Payer) -> Steps:
    first, (subscription,) = payer.amount, payer.subscriptions()
    path = f"{SUBSCRIPTIONS}/{subscription.id}"
    payer.double.controls.timeout_after_commit(_STUCK_SECONDS, method="POST", path=path)
    payer.amount = 2 * first
    with unanswered(payer.upsert):
        until("the amount is changed", lambda: _amounts(payer) == [2 * first])
        yield
    (stored,) = payer.records.subscriptions(payer.profile)
    assert stored.amount_minor == first
    yield
    assert payer.upsert().status == 200
    payer.amount = first
    payer.assert_one_subscription(amount=2 * first)
    payer.assert_paid_out_once()
    orders = [request for request in payer.posts(path) if "items" in request.params]
    assert len(orders) >= 2
    assert len({order.idempotency_key for order in orders}) == 1


def _amounts(payer: Payer) -> list[int]:
    (subscription,) = payer.subscriptions()
    return [item.price.unit_amount for item in subscription["items"].data]


def an_end_before_the_response(payer: Payer) -> Steps:
    (subscription,) = payer.subscriptions()
    path = f"{SUBSCRIPTIONS}/{subscription.id}"
    payer.double.controls.timeout_after_commit(_STUCK_SECONDS, method="DELETE", path=path)
    with unanswered(payer.cancel):
        until("it has ended", lambda: payer.subscriptions()[0].status == "canceled")
        yield
    assert payer.records.subscriptions(payer.profile)[0].status == "active"
    yield
    assert [request.status for request in payer.records.subscriptions(payer.profile)] == ["canceled"]
    assert payer.cancel().status == 404
    assert [request.id for request in payer.subscriptions()] == [subscription.id]
    payer.assert_paid_out_once()


def nothing(_payer: Payer) -> None:
    """Have done nothing before."""


def a_card(payer: Payer) -> None:
    """Have given a card."""
    payer.with_card()


def a_subscription(payer: Payer) -> None:
    """Have paid for a month."""
    payer.with_card().subscribed()


# Each scenario, and what its person has done before.
STUCK_AT_THE_PROVIDER: dict[Scenario, Callable[[Payer], None]] = {
    a_customer_before_it_was_requested: nothing,
    a_customer_before_the_response: nothing,
    a_subscription_before_it_was_requested: a_card,
    a_subscription_before_the_response: a_card,
    a_change_before_the_response: a_subscription,
    an_end_before_the_response: a_subscription,
}
STUCK_AT_THE_DATABASE: dict[Scenario, Callable[[Payer], None]] = {
    a_customer_before_the_response_was_stored: nothing,
    a_subscription_before_the_response_was_stored: a_card,
}
SCENARIOS = STUCK_AT_THE_PROVIDER | STUCK_AT_THE_DATABASE


@pytest.fixture(scope="module")
def running(started_stack: Stack) -> Iterator[dict[Scenario, Steps]]:
    """Run every scenario up to where everything runs again."""
    stack = started_stack
    payers = [Payer(person, stack, random.randint(500, 50_000)) for person in stack.newcomers(len(SCENARIOS))]
    for prepare, payer in zip(SCENARIOS.values(), payers, strict=True):
        prepare(payer)
    # Otherwise a fault may meet what the worker sends for the event of a card, under the same path.
    payers[0].until_all_processed()
    stack.provider.controls.hold()
    running = {scenario: scenario(payer) for scenario, payer in zip(SCENARIOS, payers, strict=True)}
    with stack.broken_by(running.values()):
        _interrupt(stack, payers, running)
        stack.restart(stack.web)
        _resume(stack, payers)
        stack.provider.controls.release("shuffled")
        yield running


def _interrupt(stack: Stack, payers: list[Payer], running: dict[Scenario, Steps]) -> None:
    """Bring every scenario to its step, kill the web server there, and have each check the rest."""
    for scenario in STUCK_AT_THE_PROVIDER:
        next(running[scenario])
    # At last and at once, because no request waits for locks as long as for the provider.
    side_by_side([partial(next, running[scenario]) for scenario in STUCK_AT_THE_DATABASE], threads=2)
    assert [bool(payer.records.pending(payer.profile)) for payer in payers] == [True] * len(payers)
    stack.kill(stack.web)
    for payer in payers:
        payer.remember_requests()
    # Requests still on their way are gone with the other end.
    stack.kill(stack.provider)
    stack.restart(stack.provider)
    for steps in running.values():
        next(steps)


def _resume(stack: Stack, payers: list[Payer]) -> None:
    """Let beat's sweep finish what was begun and abandoned."""
    BillingRecords(stack.services.database_url).age_operations()
    stack.enqueue("payments.resume_operations")
    for payer in payers:
        payer.until_nothing_is_pending()


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_an_order_outlives_the_web_process_that_was_killed(
    running: dict[Scenario, Steps], scenario: Scenario
) -> None:
    assert list(running[scenario]) == []
