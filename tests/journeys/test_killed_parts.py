"""
A part that is killed at the worst moment loses no call, sends none twice and charges none twice.

One kill of web server and worker meets four calls, each at another step.
"""

from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import pytest
from urllib3.exceptions import HTTPError

from tests.journeys.people import Person
from tests.journeys.stack import Stack, thaw
from tests.journeys.waiting import until

pytestmark = pytest.mark.journey

Steps = Generator[None, None, None]
# Up to its first `yield` a scenario comes to the step at which web server and worker are killed, up to the second one
# it checks the rest; after that everything runs again.
Scenario = Callable[[Stack, Person], Steps]
EndsOnce = Callable[[dict[str, Any], str], None]


def ending_once(stack: Stack, person: Person) -> EndsOnce:
    """Return a check: the person's only call was mined once and charged once, and nothing is held."""
    since = stack.chain.height
    profile = person.profile.profile_address
    before = stack.records.account(profile).balance

    def check(body: dict[str, Any], transaction_hash: str) -> None:
        ending = person.ending(transaction_hash)
        (mined,) = stack.chain.mined(transaction_hash)
        account = stack.records.account(profile)
        assert (ending["status"], ending["creditsUsed"]) == ("Success", mined.credits)
        assert stack.chain.sent_to(person.profile.key_manager_address, since=since) == [transaction_hash]
        assert stack.records.charges(profile) == [mined.credits]
        assert (account.balance, account.held) == (before - mined.credits, 0)
        assert person.accepted(body) == transaction_hash
        assert len(stack.records.calls(profile)) == 1

    return check


def the_tracker_between_receipt_and_settlement(stack: Stack, person: Person) -> Steps:
    ends_once, body, profile = ending_once(stack, person), person.new_call(), person.profile.profile_address
    transaction_hash = person.accepted(body)
    (call,) = stack.records.calls(profile)
    until("the call is sent", lambda: stack.records.attempts(call)[0].status == "sent")
    # The settlement gives up after a tenth of a second, until the next block.
    with stack.records.locked_account(profile):
        stack.chain.mine(3)
        until("the receipt is stored", lambda: stack.records.attempts(call)[0].status == "mined")
        yield
    (call,) = stack.records.calls(profile)
    assert (call.status, call.hold) == ("Submitted", "HELD")
    assert stack.records.charges(profile) == []
    yield
    ends_once(body, transaction_hash)


def the_worker_before_it_noted_the_broadcast(stack: Stack, person: Person) -> Steps:
    ends_once, body = ending_once(stack, person), person.new_call()
    with stack.frozen(stack.worker):
        transaction_hash = person.accepted(body)
        with stack.records.locked_attempt(transaction_hash) as lock:
            thaw(stack.worker)
            until("the worker waits for the row", lambda: lock.is_waited_for)
            assert stack.chain.knows(transaction_hash)
            yield
    yield
    ends_once(body, transaction_hash)


def the_worker_before_it_was_notified(stack: Stack, person: Person) -> Steps:
    ends_once, body = ending_once(stack, person), person.new_call()
    with stack.frozen(stack.worker):
        transaction_hash = person.accepted(body)
        assert not stack.chain.knows(transaction_hash)
        yield
    assert not stack.chain.knows(transaction_hash)
    yield
    ends_once(body, transaction_hash)


def the_web_process_between_commit_and_response(stack: Stack, person: Person) -> Steps:
    ends_once, body = ending_once(stack, person), person.new_call()
    with ThreadPoolExecutor(1) as caller:
        result = caller.submit(person.execute, body)
        (call,) = until("the call is stored", lambda: stack.records.calls(person.profile.profile_address))
        yield
        # Nothing keeps a request between commit and response, so on some runs the response was faster.
        with suppress(HTTPError):
            result.result()
    yield
    assert person.accepted(body) == call.transaction_hash
    ends_once(body, call.transaction_hash)


# In this order: each may need what the next ones bring to a stop, and the last one must be killed at once.
SCENARIOS: list[Scenario] = [
    the_tracker_between_receipt_and_settlement,
    the_worker_before_it_noted_the_broadcast,
    the_worker_before_it_was_notified,
    the_web_process_between_commit_and_response,
]


@pytest.fixture(scope="module")
def running(started_stack: Stack) -> Iterator[dict[Scenario, Steps]]:
    """Run every scenario up to where everything runs again."""
    stack = started_stack
    people = stack.newcomers(len(SCENARIOS))
    running = {scenario: scenario(stack, person) for scenario, person in zip(SCENARIOS, people, strict=True)}
    with stack.broken_by(running.values()):
        with stack.chain.paused():
            for steps in running.values():
                next(steps)
            stack.kill(stack.web)
            stack.kill(stack.worker)
            for steps in running.values():
                next(steps)
            stack.restart(stack.web, stack.worker)
        yield running


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_a_call_outlives_a_kill_of(running: dict[Scenario, Steps], scenario: Scenario) -> None:
    assert list(running[scenario]) == []


def test_a_call_outlives_the_worker_that_was_killed_on_the_way_to_the_node(
    stack: Stack, person: Person
) -> None:
    ends_once, body = ending_once(stack, person), person.new_call()
    with stack.frozen(stack.worker):
        transaction_hash = person.accepted(body)
        with stack.frozen(stack.node):
            thaw(stack.worker)
            stack.until_node_gets_request()
            stack.kill(stack.worker)
    assert not stack.chain.knows(transaction_hash)

    stack.restart(stack.worker)

    ends_once(body, transaction_hash)
