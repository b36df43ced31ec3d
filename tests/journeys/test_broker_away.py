"""Redis stalls, or is gone: calls are accepted, sent and settled, and no sign-in attempt goes uncounted."""

import time

import pytest

from tests.journeys.api import Api, ApiResponse
from tests.journeys.people import Person
from tests.journeys.stack import Stack
from tests.journeys.waiting import until

pytestmark = pytest.mark.journey


def ask_to_sign_in(stack: Stack, person: Person) -> ApiResponse:
    """Ask for a challenge."""
    return Api(stack.web.url).ask("/api/auth/nonce", {"address": person.profile.profile_address})


def until_requests_are_counted(stack: Stack, person: Person) -> None:
    """Wait until every web process asks Redis again, which each does a second after its last failure."""

    def counted_for_two_seconds() -> bool:
        deadline = time.monotonic() + 2
        while time.monotonic() < deadline:
            if ask_to_sign_in(stack, person).status != 200:
                return False
            time.sleep(0.1)
        return True

    until("everybody may sign in", counted_for_two_seconds)


def test_while_redis_hangs_calls_are_accepted_and_settled_and_sign_in_is_refused(
    stack: Stack, person: Person
) -> None:
    body = person.new_call()
    with stack.frozen(stack.redis):
        transaction_hash = person.accepted(body)
        refused = ask_to_sign_in(stack, person)
        assert person.accepted(body) == transaction_hash
        assert person.ending(transaction_hash)["status"] == "Success"
    assert (refused.status, refused.body["code"], bool(refused.retry_after)) == (
        503,
        "service-unavailable",
        True,
    )
    until_requests_are_counted(stack, person)


def test_calls_accepted_while_redis_is_down_are_settled_without_it(stack: Stack, person: Person) -> None:
    stack.kill(stack.redis)
    transaction_hash = person.accepted(person.new_call())
    refused = ask_to_sign_in(stack, person)
    assert (refused.status, refused.body["code"], bool(refused.retry_after)) == (
        503,
        "service-unavailable",
        True,
    )

    assert person.ending(transaction_hash)["status"] == "Success"

    stack.restart(stack.redis)
    until_requests_are_counted(stack, person)


def test_a_call_is_settled_even_if_redis_lost_its_data(stack: Stack, person: Person) -> None:
    with stack.frozen(stack.worker):
        transaction_hash = person.accepted(person.new_call())
        stack.forget_messages()
    assert person.ending(transaction_hash)["status"] == "Success"
    until_requests_are_counted(stack, person)
