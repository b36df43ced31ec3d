"""More calls than the relayers carry at a time, and what becomes of a channel in which one call reverts."""

from collections import defaultdict
from collections.abc import Callable
from functools import partial

import pytest

from tests.journeys.people import Person, a_call_to, channel_of, some_data
from tests.journeys.stack import Stack
from tests.journeys.waiting import at_once, side_by_side, until

pytestmark = pytest.mark.journey

CHANNELS, CALLS, PROFILES = 8, 40, 72
# What one relayer carries by default. A user may take half of what others leave free; the crowd takes the rest.
IN_FLIGHT = 16

# Who called, and the hash in the response.
Accepted = tuple[Person, str]


def assert_no_account_nonce_is_missing(stack: Stack) -> None:
    """Every account nonce that was ever given out is on chain, with one of our transactions."""
    for relayer in stack.records.relayers():
        used = stack.records.mined_account_nonces(relayer.address)
        assert used == list(range(relayer.next_account_nonce))
        assert stack.chain.account_nonce(relayer.address) == relayer.next_account_nonce


def assert_in_order_within_each_channel(stack: Stack, person: Person) -> None:
    """In each channel the calls stand on chain as their relay nonces count."""
    calls = sorted(stack.records.calls(person.profile.profile_address), key=lambda call: call.relay_nonce)
    mined = stack.chain.mined(*(call.transaction_hash for call in calls))
    places = defaultdict(list)
    for call, item in zip(calls, mined, strict=True):
        places[channel_of(int(call.relay_nonce))].append(item.place)
    assert len(places) == CHANNELS
    assert all(in_channel == sorted(in_channel) for in_channel in places.values())


def test_more_calls_than_the_relayers_carry_succeed_in_order_at_the_receipts_cost(
    stack: Stack,
) -> None:
    busy, crowd = stack.newcomer(), stack.newcomers(PROFILES)
    profiles = [person.profile.profile_address for person in (busy, *crowd)]

    def walk(channel: int) -> list[Accepted]:
        numbers = range(CALLS // CHANNELS + (channel < CALLS % CHANNELS))
        bodies = (busy.wallet.signed(some_data(), nonce=(channel << 128) + number) for number in numbers)
        return [(busy, busy.accepted_in_the_end(body)) for body in bodies]

    def call_once(person: Person) -> list[Accepted]:
        return [(person, person.accepted_in_the_end(person.new_call()))]

    def mine_when_every_relayer_is_full() -> list[Accepted]:
        capacity = len(stack.records.relayers()) * IN_FLIGHT
        until("every relayer is full", lambda: stack.records.in_progress(profiles) == capacity)
        stack.chain.resume()
        return []

    jobs: list[Callable[[], list[Accepted]]] = [mine_when_every_relayer_is_full]
    jobs += [partial(walk, channel) for channel in range(CHANNELS)]
    jobs += [partial(call_once, person) for person in crowd]
    stack.chain.pause()
    calls = [one for accepted in at_once(jobs) for one in accepted]

    assert len({transaction_hash for _, transaction_hash in calls}) == CALLS + PROFILES
    until("every call is settled", lambda: not stack.records.in_progress(profiles))
    endings = side_by_side(
        [partial(person.status, transaction_hash) for person, transaction_hash in calls], threads=8
    )
    mined = stack.chain.mined(*(transaction_hash for _, transaction_hash in calls))
    assert {ending["status"] for ending in endings} == {"Success"}
    assert all(item.succeeded for item in mined)
    assert [ending["creditsUsed"] for ending in endings] == [item.credits for item in mined]
    charges = [charge for profile in profiles for charge in stack.records.charges(profile)]
    assert sum(charges) == sum(item.credits for item in mined)
    assert all(stack.records.account(profile).held == 0 for profile in profiles)
    assert_in_order_within_each_channel(stack, busy)
    assert_no_account_nonce_is_missing(stack)


def test_calls_that_were_sent_behind_a_revert_fail_with_it_and_pay_their_gas(
    stack: Stack, person: Person
) -> None:
    profile, target = person.profile.profile_address, stack.services.world.deploy_flaky()
    payloads = [some_data(), a_call_to(target.address), some_data(), some_data()]
    with stack.chain.paused():
        with stack.frozen(stack.worker):
            hashes = [
                person.accepted(person.signed(payload, ahead=ahead)) for ahead, payload in enumerate(payloads)
            ]
            target.flip()
        stack.until_sent(profile)

    endings = [person.ending(transaction_hash) for transaction_hash in hashes]

    mined = stack.chain.mined(*hashes)
    assert [ending["status"] for ending in endings] == ["Success", "Failed", "Failed", "Failed"]
    assert [item.succeeded for item in mined] == [True, False, False, False]
    assert sorted(stack.records.charges(profile)) == sorted(item.credits for item in mined)
    assert stack.records.account(profile).held == 0
    assert_no_account_nonce_is_missing(stack)


def test_calls_that_wait_unsent_behind_a_revert_are_cancelled_and_cost_nothing(
    stack: Stack, person: Person
) -> None:
    profile, target = person.profile.profile_address, stack.services.world.deploy_flaky()
    bodies = [
        person.signed(payload, ahead=ahead)
        for ahead, payload in enumerate([some_data(), a_call_to(target.address), some_data(), some_data()])
    ]
    with stack.chain.paused():
        with stack.frozen(stack.worker):
            sent = [person.accepted(body) for body in bodies[:2]]
            target.flip()
        stack.until_sent(profile)
        with stack.frozen(stack.worker):
            unsent = [person.accepted(body) for body in bodies[2:]]
            stack.chain.mine()
            stack.kill(stack.worker)
        # So that the tracker comes first.
        with stack.records.leased("broadcasting"):
            stack.restart(stack.worker)
            until("the revert is seen", lambda: stack.records.calls(profile)[1].terminal_status == "Failed")

    endings = [person.ending(transaction_hash) for transaction_hash in [*sent, *unsent]]

    assert [ending["status"] for ending in endings] == ["Success", "Failed", "Cancelled", "Cancelled"]
    assert [ending["creditsUsed"] for ending in endings[2:]] == [0, 0]
    burned = stack.chain.mined(*sent)
    assert sorted(stack.records.charges(profile)) == sorted(item.credits for item in burned)
    for call in stack.records.calls(profile)[2:]:
        withdrawn, transfer = stack.records.attempts(call)
        (landed,) = stack.chain.mined(transfer.transaction_hash)
        assert (call.failure_code, call.hold) == ("predecessor-failed", "RELEASED")
        assert (withdrawn.status, transfer.kind) == ("withdrawn", "cancellation")
        assert (landed.to, landed.account_nonce) == (landed.sender, withdrawn.account_nonce)
        assert not stack.chain.knows(withdrawn.transaction_hash)
    assert stack.records.account(profile).held == 0
    assert_no_account_nonce_is_missing(stack)

    target.flip()
    again = [person.accepted(body) for body in bodies[1:]]
    assert [person.ending(transaction_hash)["status"] for transaction_hash in again] == ["Success"] * 3
