"""
A process that is killed between a webhook and its payout loses no money and pays none out twice.

One kill of web server and worker interrupts the events of four people, each at another step.
"""

import random
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from tests.journeys.billing import Payer
from tests.journeys.people import Person
from tests.journeys.stack import Stack
from tests.journeys.waiting import side_by_side, until

pytestmark = pytest.mark.journey
PAID = "invoice.paid"
# Each of them alone would lead to the payout.
EVENT_TYPES = [PAID, "invoice.created", "invoice.finalized", "invoice.updated", "invoice.payment_succeeded"]
# Longer than all the scenarios take to come to their steps; the kill ends it.
_STUCK_SECONDS = 50

Steps = Generator[None, None, None]
# Up to its first `yield` a scenario comes to the step at which web server and worker are killed, up to the second one
# it checks the rest; after that everything runs again.
Scenario = Callable[[Payer], Steps]


def _paid(stack: Stack, people: list[Person]) -> list[Payer]:
    """Have people pay, and keep the events of the payment from the service; all others are processed."""
    payers = [Payer(person, stack, amount=random.randint(500, 50_000)).with_card() for person in people]
    stack.provider.controls.drop(types=EVENT_TYPES, count=None, reported_as="delivered")
    assert {payer.upsert().status for payer in payers} == {200}
    for payer in payers:
        payer.until_all_processed()
        assert payer.records.payouts(payer.profile) == []
    stack.provider.controls.clear_faults()
    return payers


def _processed(payer: Payer, ids: list[str]) -> bool:
    return [event.status for event in payer.records.events(*ids)] == ["processed"] * len(ids)


def _deliver(payer: Payer) -> None:
    """Deliver the event of the payment."""
    assert payer.double.controls.replay(events=payer.event_ids(PAID)) == 1


def _assert_settled(payer: Payer) -> None:
    payer.assert_settled()
    until("the event is processed", lambda: _processed(payer, payer.event_ids(PAID)))
    payer.assert_paid_out_once()


def the_worker_before_it_called_the_provider(payer: Payer) -> Steps:
    (subscription,) = payer.subscriptions()
    invoice, controls = f"/v1/invoices/{subscription.latest_invoice}", payer.double.controls
    controls.slow(_STUCK_SECONDS, method="GET", path=invoice)
    _deliver(payer)
    until("it asks", lambda: None in [request.status for request in controls.requests("GET", invoice)])
    yield
    assert payer.records.payouts(payer.profile) == []
    yield
    _assert_settled(payer)


def the_worker_before_it_wrote_anything(payer: Payer) -> Steps:
    with payer.records.locked_customer(payer.profile) as lock:
        _deliver(payer)
        until("the answer waits to be written", lambda: lock.is_waited_for)
        yield
    assert not _processed(payer, payer.event_ids(PAID))
    yield
    _assert_settled(payer)


def the_worker_between_its_rows(payer: Payer) -> Steps:
    with payer.records.unwritable("credits_allowance") as lock:
        _deliver(payer)
        until("the row waits", lambda: lock.is_waited_for)
        yield
    assert payer.records.paid_out(payer.profile) == []
    assert payer.records.account(payer.profile).balance == payer.opening_balance
    yield
    _assert_settled(payer)


def the_web_process_before_its_response(payer: Payer) -> Steps:
    # After its commit the request sends to the broker, which is suspended: this is the moment to kill it in.
    event_ids = payer.event_ids(PAID)
    with payer.stack.frozen(payer.stack.redis):
        _deliver(payer)
        until("the event is stored", lambda: payer.records.events(*event_ids))
        yield
    assert payer.double.controls.deliveries("pending")
    yield
    _assert_settled(payer)
    until("the second delivery is taken", lambda: not payer.double.controls.deliveries("pending"))
    payer.assert_paid_out_once()


AT_THE_PROVIDER = the_worker_before_it_called_the_provider
AT_THE_DATABASE: list[Scenario] = [the_worker_before_it_wrote_anything, the_worker_between_its_rows]
AT_THE_BROKER = the_web_process_before_its_response
SCENARIOS: list[Scenario] = [AT_THE_PROVIDER, *AT_THE_DATABASE, AT_THE_BROKER]


@pytest.fixture(scope="module")
def running(started_stack: Stack) -> Iterator[dict[Scenario, Steps]]:
    """Run every scenario up to where everything runs again."""
    stack = started_stack
    payers = _paid(stack, stack.newcomers(len(SCENARIOS)))
    running = {scenario: scenario(payer) for scenario, payer in zip(SCENARIOS, payers, strict=True)}
    with stack.broken_by(running.values()):
        next(running[AT_THE_PROVIDER])
        # At last what the broker keeps waiting, because no request waits for it longer than a few seconds.
        side_by_side([partial(next, running[scenario]) for scenario in AT_THE_DATABASE], threads=2)
        next(running[AT_THE_BROKER])
        stack.kill(stack.web)
        stack.kill(stack.worker)
        for steps in running.values():
            next(steps)
        stack.restart(stack.web, stack.worker)
        yield running


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_the_payout_outlives_a_kill_of(running: dict[Scenario, Steps], scenario: Scenario) -> None:
    assert list(running[scenario]) == []


def test_a_payment_without_events_is_paid_out_after_a_kill_during_the_catch_up(
    stack: Stack, person: Person
) -> None:
    (payer,) = _paid(stack, [person])
    with payer.records.unwritable("payments_payout") as lock, ThreadPoolExecutor(1) as clock:
        clock.submit(stack.enqueue, "payments.catch_up")
        until("the row waits", lambda: lock.is_waited_for)
        stack.kill(stack.worker)
    assert payer.records.paid_out(payer.profile) == []

    stack.restart(stack.worker)
    stack.enqueue("payments.catch_up")
    stack.enqueue("payments.catch_up")

    payer.assert_paid_out_once()
    assert payer.records.events(*payer.event_ids(PAID)) == []
    _deliver(payer)
    _assert_settled(payer)
