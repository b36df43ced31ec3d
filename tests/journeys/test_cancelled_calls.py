"""Signed calls that the node will never take: their account nonce is used up, then their credits go back."""

import time

import pytest

from tests.journeys.api import until_served
from tests.journeys.chain import BLOCK_SECONDS, GWEI
from tests.journeys.people import Person
from tests.journeys.records import Attempt, Call
from tests.journeys.stack import Stack
from tests.journeys.waiting import until

pytestmark = pytest.mark.journey


def call_of(stack: Stack, person: Person) -> Call:
    """Return the person's first call."""
    return stack.records.calls(person.profile.profile_address)[0]


def last_attempt(stack: Stack, person: Person) -> Attempt:
    """Return the newest transaction that was signed for the person's first call."""
    return stack.records.attempts(call_of(stack, person))[-1]


def assert_ends_once_the_transfer_is_confirmed(
    stack: Stack, person: Person, transaction_hash: str, status: str, code: str
) -> None:
    """Mine the self-transfer block by block: until it is confirmed the credits stay held."""
    profile = person.profile.profile_address
    before = stack.records.account(profile)
    until("the self-transfer is sent", lambda: last_attempt(stack, person).status == "sent")
    transfer = last_attempt(stack, person)
    assert transfer.kind == "cancellation"
    assert (call_of(stack, person).terminal_status, call_of(stack, person).hold) == (status, "HELD")
    stack.chain.mine()
    until("the self-transfer is mined", lambda: last_attempt(stack, person).status == "mined")
    assert (call_of(stack, person).hold, stack.records.account(profile)) == ("HELD", before)
    stack.chain.mine()

    ending = person.ending(transaction_hash)

    call = call_of(stack, person)
    assert (ending["status"], ending["creditsUsed"]) == (status, 0)
    assert (call.status, call.failure_code, call.hold, call.real_cost) == (status, code, "RELEASED", 0)
    account = stack.records.account(profile)
    assert (account.balance, account.held) == (before.balance, 0)
    assert stack.records.charges(profile) == []
    (landed,) = stack.chain.mined(transfer.transaction_hash)
    assert (landed.to, landed.sender) == (call.relayer, call.relayer)
    assert landed.account_nonce == stack.records.attempts(call)[0].account_nonce
    assert person.status(transfer.transaction_hash) == ending


def assert_every_relayer_goes_on(stack: Stack, person: Person) -> None:
    """Give each relayer one more call; all succeed on the account nonces that follow."""
    relayers = stack.records.relayers()
    with stack.chain.paused():
        hashes = [person.accepted(person.new_call(channel=7 + place)) for place in range(len(relayers))]
    assert {person.ending(transaction_hash)["status"] for transaction_hash in hashes} == {"Success"}
    # A call at the fees of a block ago may be below the base fee by now; it is signed again, and has another hash.
    calls = stack.records.calls(person.profile.profile_address)[-len(relayers) :]
    mined = stack.chain.mined(*(call.transaction_hash for call in calls))
    by_relayer = {item.sender: item.account_nonce for item in mined}
    assert by_relayer == {relayer.address: relayer.next_account_nonce for relayer in relayers}


def test_a_call_whose_relayer_was_emptied_is_cancelled_once_the_relayer_has_money_again(
    stack: Stack, person: Person
) -> None:
    with stack.chain.paused():
        with stack.frozen(stack.worker):
            transaction_hash = person.accepted(person.new_call())
            relayer = call_of(stack, person).relayer
            balance = stack.chain.balance(relayer)
            stack.chain.set_balance(relayer, 1)
        until("the node refuses the self-transfer too", lambda: "cancellation" in _refused(stack, person))
        assert "call" in _refused(stack, person)
        assert person.status(transaction_hash)["status"] == "Pending"
        assert call_of(stack, person).hold == "HELD"

        stack.chain.set_balance(relayer, balance)

        assert_ends_once_the_transfer_is_confirmed(
            stack, person, transaction_hash, "Cancelled", "refused-by-node"
        )
    assert_every_relayer_goes_on(stack, person)


def _refused(stack: Stack, person: Person) -> set[str]:
    attempts = stack.records.attempts(call_of(stack, person))
    return {attempt.kind for attempt in attempts if "nsufficient" in attempt.node_message}


def test_a_call_that_expired_before_it_was_sent_expires_unsent(stack: Stack, person: Person) -> None:
    with stack.chain.paused():
        with stack.frozen(stack.worker):
            transaction_hash = person.accepted(person.new_call(validity=stack.chain.now + 600))
            stack.chain.advance(601)
        assert_ends_once_the_transfer_is_confirmed(
            stack, person, transaction_hash, "Expired", "relay-call-expired"
        )
        assert not stack.chain.knows(transaction_hash)
    assert_every_relayer_goes_on(stack, person)


def test_a_call_that_expired_in_the_pool_is_replaced_by_a_self_transfer(stack: Stack, person: Person) -> None:
    with stack.chain.paused():
        transaction_hash = person.accepted(person.new_call(validity=stack.chain.now + 600))
        stack.until_sent(person.profile.profile_address)
        assert stack.chain.knows(transaction_hash)
        stack.chain.advance(601, base_fee_wei=10 * GWEI)
        until("a self-transfer takes over", lambda: last_attempt(stack, person).kind == "cancellation")
        assert_ends_once_the_transfer_is_confirmed(
            stack, person, transaction_hash, "Expired", "relay-call-expired"
        )
        assert not stack.chain.knows(transaction_hash)
    assert_every_relayer_goes_on(stack, person)


def test_a_call_whose_fee_went_above_the_cap_waits_until_the_chain_is_affordable_again(
    stack: Stack, person: Person
) -> None:
    late = stack.newcomer()
    with stack.chain.paused():
        with stack.frozen(stack.worker):
            transaction_hash = person.accepted(person.new_call())
            stack.chain.price_next_block(100 * GWEI)
        # A web process uses what it read of the fees for as long as a block takes.
        time.sleep(BLOCK_SECONDS + 0.1)
        body = late.new_call()
        refused = until_served(lambda: late.execute(body), only_code="chain-unavailable")
        assert (refused.status, refused.body["code"]) == (503, "fees-too-high")
        assert refused.retry_after
        assert stack.records.calls(late.profile.profile_address) == []
        assert stack.records.account(late.profile.profile_address).held == 0
        until("the node refuses the call", lambda: "fee" in last_attempt(stack, person).node_message)
        assert person.status(transaction_hash)["status"] == "Pending"
        assert (call_of(stack, person).terminal_status, call_of(stack, person).hold) == ("", "HELD")

        stack.chain.price_next_block(GWEI)

    ending = person.ending(transaction_hash)
    assert ending["status"] == "Success"
    assert stack.records.charges(person.profile.profile_address) == [ending["creditsUsed"]]
    assert_every_relayer_goes_on(stack, person)
