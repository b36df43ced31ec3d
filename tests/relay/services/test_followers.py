"""Followers are cancelled with the call before them while they are unsent."""

import secrets
from collections.abc import Callable

import pytest
from django.conf import settings
from django.utils import timezone

from credits.models import CreditEntry, HoldStatus
from credits.queries import balance_of
from credits.services.reconciliation import find_differences
from devstack.services.stack import Services
from devstack.world.test_contracts import Flaky
from gateway.chain.client import get_chain_client
from gateway.chain.lsp25 import RelayCall
from relay.errors import RelayNonceGap
from relay.models import Relayer, RelayTransaction
from tests.relay.chain import Chain, FaultyClient
from tests.relay.conftest import Accept, Refused
from tests.relay.signing import execute_payload, window
from tests.relay.workers import broadcast_all, later, track
from users.models import User

pytestmark = pytest.mark.django_db


@pytest.fixture
def flaky(services: Services, chain: Chain) -> Flaky:
    """A target that succeeds until it is flipped."""
    return services.world.deploy_flaky()


@pytest.fixture
def channel(relayers: list[Relayer]) -> int:
    """An unused channel."""
    return secrets.randbits(120)


def assert_nothing_is_missing(relayer: Relayer, chain: Chain, user: User) -> None:
    """The chain has used every account nonce that was given out, and nothing stays held."""
    relayer.refresh_from_db()
    assert relayer.next_account_nonce == relayer.mined_account_nonce == chain.account_nonce(relayer.address)
    assert balance_of(user).held == 0
    assert find_differences() == []


def test_unsent_followers_of_a_cancelled_call_are_cancelled_unsent(
    user: User, accept: Accept, node: FaultyClient, chain: Chain, channel: int, settle: Callable[[], int]
) -> None:
    before = balance_of(user)
    first = accept(channel=channel, validity=window(0, int(timezone.now().timestamp()) + 100))
    followers = [accept(channel=channel, ahead=ahead) for ahead in (1, 2)]

    broadcast_all(now=later(101))
    assert node.sent == []
    assert settle() == 3

    first.refresh_from_db()
    assert first.status == "Expired"
    for row in followers:
        row.refresh_from_db()
        assert (row.status, row.failure_code) == ("Cancelled", "predecessor-failed")
        assert row.hold.status == HoldStatus.RELEASED
    assert balance_of(user) == before
    assert_nothing_is_missing(first.relayer, chain, user)


def test_a_send_error_cancels_the_followers_in_the_same_broadcast(
    accept: Accept, chain: Chain, channel: int, settle: Callable[[], int], user: User
) -> None:
    rows = [accept(channel=channel, ahead=ahead) for ahead in range(3)]
    chain.fund(0, rows[0].relayer.address)
    broadcast_all()
    codes = RelayTransaction.objects.order_by("relay_nonce").values_list("failure_code", flat=True)
    assert list(codes) == ["refused-by-node", "predecessor-failed", "predecessor-failed"]

    chain.fund(10**18, rows[0].relayer.address)
    assert settle() == 3
    assert_nothing_is_missing(rows[0].relayer, chain, user)


def test_a_revert_in_the_middle_of_a_channel_fails_the_calls_sent_behind_it(
    user: User, accept: Accept, chain: Chain, channel: int, flaky: Flaky
) -> None:
    before = balance_of(user)
    rows = [
        accept(channel=channel),
        accept(channel=channel, ahead=1, payload=execute_payload(flaky.address)),
        accept(channel=channel, ahead=2),
        accept(channel=channel, ahead=3),
    ]
    flaky.flip()
    assert broadcast_all() == 4
    chain.mine(settings.CONFIRMATIONS)
    assert track() == 4

    outcomes = list(RelayTransaction.objects.order_by("relay_nonce").values_list("status", "failure_code"))
    assert outcomes == [
        ("Success", ""),
        ("Failed", "target-reverted"),
        ("Failed", "relay-nonce-refused"),
        ("Failed", "relay-nonce-refused"),
    ]
    spent = 0
    for row in rows:
        row.refresh_from_db()
        receipt = chain.receipt(row.transaction_hash)
        assert receipt is not None
        cost = -(-int(receipt["gasUsed"], 16) * int(receipt["effectiveGasPrice"], 16) // settings.CREDIT_WEI)
        assert (row.real_cost, row.hold.status) == (cost, HoldStatus.CAPTURED)
        spent += cost
    assert balance_of(user).balance == before.balance - spent
    assert CreditEntry.objects.filter(source="RELAY_TRANSACTION").count() == 4
    assert_nothing_is_missing(rows[0].relayer, chain, user)


def test_a_revert_cancels_unsent_followers_and_admits_no_new_ones(
    user: User,
    accept: Accept,
    new_call: Callable[..., RelayCall],
    node: FaultyClient,
    chain: Chain,
    channel: int,
    flaky: Flaky,
    refused: Refused,
    settle: Callable[[], int],
) -> None:
    failing = accept(channel=channel, payload=execute_payload(flaky.address))
    flaky.flip()
    broadcast_all()
    follower = accept(channel=channel, ahead=1)
    chain.mine()
    # The revert is seen in the first block, though it is not final yet.
    assert track() == 0
    refusal = refused.call(RelayNonceGap, user, new_call(channel=channel, ahead=2))
    assert refusal.members == {"expectedNonce": str(failing.relay_nonce)}

    broadcast_all()
    assert bytes(follower.attempts.get(kind="call").raw) not in node.sent
    assert settle() == 2
    follower.refresh_from_db()
    failing.refresh_from_db()
    assert (failing.status, failing.hold.status) == ("Failed", HoldStatus.CAPTURED)
    assert (follower.status, follower.hold.status) == ("Cancelled", HoldStatus.RELEASED)
    assert not chain.knows(follower.attempts.get(kind="call").transaction_hash)
    assert_nothing_is_missing(failing.relayer, chain, user)


def test_a_repeated_call_is_not_a_predecessor_of_followers_of_its_first_try(
    user: User,
    accept: Accept,
    new_call: Callable[..., RelayCall],
    chain: Chain,
    channel: int,
    flaky: Flaky,
    settle: Callable[[], int],
) -> None:
    call = new_call(channel=channel, payload=execute_payload(flaky.address))
    failing = accept(call)
    follower = accept(channel=channel, ahead=1)
    flaky.flip()
    # The follower stays behind: its account nonce is lower than that of the repeat below.
    get_chain_client().send_raw_transactions([bytes(failing.attempts.get().raw)])
    chain.mine(settings.CONFIRMATIONS)
    assert track() == 1
    flaky.flip()
    repeated = accept(call)
    assert (repeated.generation, repeated.attempts.get().account_nonce) == (
        1,
        follower.attempts.get().account_nonce + 1,
    )

    for _ in range(2):
        settle()

    follower.refresh_from_db()
    repeated.refresh_from_db()
    assert (follower.status, follower.failure_code) == ("Cancelled", "predecessor-failed")
    assert (repeated.status, flaky.successes) == ("Success", 1)
    assert_nothing_is_missing(failing.relayer, chain, user)
