"""Two hundred calls under load, and what becomes of a channel in which one call reverts."""

from collections import defaultdict
from functools import partial

import pytest

from tests.journeys.people import Person, a_call_to, channel_of, some_data
from tests.journeys.stack import Stack
from tests.journeys.waiting import at_once, side_by_side, until

pytestmark = pytest.mark.journey

CHANNELS, CALLS, PROFILES = 8, 100, 100


def assert_no_account_nonce_is_missing(stack: Stack) -> None:
    """Every account nonce that was ever given out is on chain, with one of our transactions."""
    for relayer in stack.records.relayers():
        used = stack.records.mined_account_nonces(relayer.address)
        assert used == list(range(relayer.next_account_nonce))
        assert stack.chain.account_nonce(relayer.address) == relayer.next_account_nonce


def test_two_hundred_calls_succeed_in_order_and_cost_what_the_receipts_say(stack: Stack) -> None:
    busy, crowd = stack.newcomer(), stack.newcomers(PROFILES)

    def walk(channel: int) -> list[str]:
        numbers = range(CALLS // CHANNELS + (channel < CALLS % CHANNELS))
        nonces = [(channel << 128) + number for number in numbers]
        return [busy.accepted_in_the_end(busy.wallet.signed(some_data(), nonce=nonce)) for nonce in nonces]

    def call_once(person: Person) -> list[str]:
        return [person.accepted_in_the_end(person.new_call())]

    walks = [partial(walk, channel) for channel in range(CHANNELS)]
    singles = [partial(call_once, person) for person in crowd]
    found = at_once([*walks, *singles])

    in_channels, of_crowd = found[:CHANNELS], [hashes[0] for hashes in found[CHANNELS:]]
    owners = [(busy, known) for hashes in in_channels for known in hashes]
    owners += list(zip(crowd, of_crowd, strict=True))
    assert len({known for _, known in owners}) == CALLS + PROFILES
    profiles = [person.profile.profile_address for person in (busy, *crowd)]
    until("every call is settled", lambda: not stack.records.in_progress(profiles))
    endings = side_by_side([partial(person.status, known) for person, known in owners], threads=8)
    mined = stack.chain.mined(*(known for _, known in owners))
    assert {ending["status"] for ending in endings} == {"Success"}
    assert all(item.succeeded for item in mined)
    assert [ending["creditsUsed"] for ending in endings] == [item.credits for item in mined]
    charged = sum(sum(stack.records.charges(profile)) for profile in profiles)
    assert charged == sum(item.credits for item in mined)
    assert all(stack.records.account(profile).held == 0 for profile in profiles)

    places = {item.transaction_hash: item.place for item in mined}
    for hashes in in_channels:
        assert [places[known] for known in hashes] == sorted(places[known] for known in hashes)
    in_order = defaultdict(list)
    for call in stack.records.calls(busy.profile.profile_address):
        in_order[channel_of(int(call.relay_nonce))].append((call.relay_nonce, places[call.transaction_hash]))
    assert len(in_order) == CHANNELS
    assert all(sorted(calls) == sorted(calls, key=lambda pair: pair[1]) for calls in in_order.values())
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

    endings = [person.ending(known) for known in hashes]

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
    with stack.chain.paused(), stack.frozen(stack.beat):
        with stack.frozen(stack.worker):
            sent = [person.accepted(body) for body in bodies[:2]]
            target.flip()
        stack.until_sent(profile)
        with stack.frozen(stack.worker):
            unsent = [person.accepted(body) for body in bodies[2:]]
            stack.chain.mine()
            stack.kill(stack.worker)
        stack.forget_messages()
        stack.restart(stack.worker)
        stack.ring("relay.track")
        until("the revert is seen", lambda: stack.records.calls(profile)[1].ends_as == "Failed")

    endings = [person.ending(known) for known in [*sent, *unsent]]

    assert [ending["status"] for ending in endings] == ["Success", "Failed", "Cancelled", "Cancelled"]
    assert [ending["creditsUsed"] for ending in endings[2:]] == [0, 0]
    burned = stack.chain.mined(*sent)
    assert sorted(stack.records.charges(profile)) == sorted(item.credits for item in burned)
    for call in stack.records.calls(profile)[2:]:
        withdrawn, transfer = stack.records.attempts(call)
        (landed,) = stack.chain.mined(transfer.transaction_hash)
        assert (call.end_code, call.hold) == ("predecessor-failed", "RELEASED")
        assert (withdrawn.status, transfer.kind) == ("withdrawn", "cancellation")
        assert (landed.to, landed.account_nonce) == (landed.sender, withdrawn.account_nonce)
        assert not stack.chain.knows(withdrawn.transaction_hash)
    assert stack.records.account(profile).held == 0
    assert_no_account_nonce_is_missing(stack)

    target.flip()
    again = [person.accepted(body) for body in bodies[1:]]
    assert [person.ending(known)["status"] for known in again] == ["Success"] * 3
