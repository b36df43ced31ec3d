"""Cancelling calls: by the service when they cannot be executed any more, and by staff before they are sent."""

import secrets
from collections.abc import Callable
from datetime import timedelta
from functools import partial

import pytest
from django.conf import settings
from django.utils import timezone

from credits.models import CreditEntry, HoldStatus
from credits.queries import balance_of
from credits.services.reconciliation import find_differences
from gateway.chain.client import get_chain_client
from gateway.chain.errors import NodeUnavailable
from gateway.chain.fees import Fees
from gateway.chain.types import SendKind
from relay.errors import AlreadyBroadcast
from relay.models import Attempt, Relayer, RelayTransaction
from relay.services.sending import broadcasting, cancellation
from tests.relay.chain import GWEI, Chain, FaultyClient, node_away
from tests.relay.conftest import LYX, Accept, Settle
from tests.relay.rows import everything
from tests.relay.signing import window
from tests.relay.workers import broadcast_all, later, track
from users.models import User

pytestmark = pytest.mark.django_db


def until(seconds: int) -> int:
    """Return the validity of a call that ends that many seconds from now."""
    return window(0, int(timezone.now().timestamp()) + seconds)


def assert_next_call_succeeds(accept: Accept, settle: Settle, relayer: Relayer, chain: Chain) -> None:
    """The relayer takes the next call on the next account nonce, and no account nonce was left out."""
    Relayer.objects.exclude(pk=relayer.pk).update(is_active=False)
    row = accept(channel=secrets.randbits(120))
    settle()
    row.refresh_from_db()
    relayer.refresh_from_db()
    assert (row.status, row.relayer) == ("Success", relayer)
    assert relayer.next_account_nonce == chain.account_nonce(relayer.address)


def test_a_call_that_expired_before_its_first_broadcast_is_never_sent(
    user: User, accept: Accept, node: FaultyClient, chain: Chain, settle: Settle
) -> None:
    before = balance_of(user)
    row = accept(validity=until(100))
    broadcast_all(now=later(101))

    assert node.sent == []
    call, cancellation = row.attempts.order_by("sequence")
    assert (call.kind, call.status) == ("call", "withdrawn")
    assert (cancellation.kind, cancellation.status) == ("cancellation", "signed")
    assert cancellation.account_nonce == call.account_nonce

    broadcast_all(now=later(101))
    transaction = chain.transaction(cancellation.transaction_hash)
    assert transaction["from"] == transaction["to"] == row.relayer.address.lower()
    assert [int(transaction[part], 16) for part in ("value", "gas", "nonce")] == [
        0,
        21_000,
        call.account_nonce,
    ]
    assert transaction["input"] == "0x"

    # Mined, not confirmed: the hold stays.
    chain.mine()
    assert track() == 0
    row.refresh_from_db()
    assert (row.status, row.hold.status) == ("Submitted", HoldStatus.HELD)
    assert balance_of(user).held == row.hold.amount

    chain.mine(settings.CONFIRMATIONS - 1)
    assert track() == 1
    row.refresh_from_db()
    row.hold.refresh_from_db()
    assert (row.status, row.failure_code, row.real_cost) == ("Expired", "relay-call-expired", 0)
    assert row.hold.status == HoldStatus.RELEASED
    assert balance_of(user) == before
    assert not chain.knows(call.transaction_hash)
    assert find_differences() == []
    assert_next_call_succeeds(accept, settle, row.relayer, chain)


def test_a_call_that_expires_before_the_next_block_is_not_sent(accept: Accept, node: FaultyClient) -> None:
    start = timezone.now()
    validity = window(0, int(start.timestamp()) + 100)
    row = accept(validity=validity)
    broadcast_all(now=start + timedelta(seconds=100 - settings.CHAIN_BLOCK_SECONDS - 1))
    assert node.sent == [bytes(row.attempts.get().raw)]

    other = accept(validity=validity, channel=secrets.randbits(120))
    broadcast_all(now=start + timedelta(seconds=100 - settings.CHAIN_BLOCK_SECONDS + 1))
    assert len(node.sent) == 1
    other.refresh_from_db()
    assert other.terminal_status == "Expired"


def test_a_call_that_expires_in_the_pool_is_replaced(
    user: User, accept: Accept, chain: Chain, settle: Settle
) -> None:
    before = balance_of(user)
    start = timezone.now()
    # It ends before its bytes are replaced for being in no block.
    row = accept(validity=window(0, int(start.timestamp()) + 57))
    answered = row.transaction_hash
    broadcast_all()
    track(now=start + timedelta(seconds=56))
    assert row.attempts.count() == 1

    track(now=start + timedelta(seconds=58))

    call, cancellation = row.attempts.order_by("sequence")
    assert (call.status, cancellation.kind) == ("replaced", "cancellation")
    for fee in ("max_fee_per_gas_wei", "max_priority_fee_per_gas_wei"):
        assert getattr(cancellation, fee) * 8 >= getattr(call, fee) * 9
    assert settle() == 1
    row.refresh_from_db()
    # The self-transfer is unknown to its wallet.
    assert (row.status, row.transaction_hash) == ("Expired", answered)
    assert balance_of(user) == before
    assert_next_call_succeeds(accept, settle, row.relayer, chain)


def test_a_call_of_a_relayer_without_funds_is_cancelled_once_it_is_funded_again(
    user: User, accept: Accept, chain: Chain, settle: Settle
) -> None:
    before = balance_of(user)
    row = accept()
    chain.fund(0, row.relayer.address)
    broadcast_all()
    row.refresh_from_db()
    assert (row.status, row.terminal_status, row.failure_code) == ("Pending", "Cancelled", "refused-by-node")
    assert "nsufficient funds" in row.attempts.get(sequence=0).node_message

    # The self-transfer costs money too: it stays and is tried again.
    for seconds in (10, 20):
        assert broadcasting.sweep(now=later(seconds)) == 0
    chain.mine(settings.CONFIRMATIONS)
    assert track() == 0
    cancellation = row.attempts.get(sequence=1)
    assert (cancellation.kind, cancellation.status) == ("cancellation", "signed")
    assert balance_of(user).held == row.hold.amount

    chain.fund(LYX, row.relayer.address)
    assert broadcasting.sweep(now=later(30)) == 1
    chain.mine(settings.CONFIRMATIONS)
    assert track() == 1
    row.refresh_from_db()
    assert (row.status, row.failure_code) == ("Cancelled", "refused-by-node")
    assert balance_of(user) == before
    assert find_differences() == []
    assert_next_call_succeeds(accept, settle, row.relayer, chain)


def test_a_permanent_send_error_cancels_the_call_with_the_nodes_message(
    user: User, accept: Accept, node: FaultyClient, settle: Settle
) -> None:
    row = accept()
    words = f"tx fee exceeds the configured cap {secrets.token_hex(4)}"
    node.answer_next(SendKind.REFUSED, message=words)

    assert broadcast_all() == 0
    assert settle() == 1

    row.refresh_from_db()
    assert (row.status, row.failure_code, words in row.failure_detail) == (
        "Cancelled",
        "refused-by-node",
        True,
    )
    assert row.attempts.get(sequence=0).node_message == words
    assert balance_of(user).held == 0
    assert not CreditEntry.objects.filter(source="RELAY_TRANSACTION").exists()


def test_a_send_error_of_one_call_does_not_keep_others_from_being_sent(
    accept: Accept, node: FaultyClient, relayers: list[Relayer]
) -> None:
    Relayer.objects.exclude(pk=relayers[0].pk).update(is_active=False)
    rows = [accept(channel=secrets.randbits(120)) for _ in range(3)]
    node.answer_next(SendKind.REFUSED)
    assert broadcast_all() == 2
    assert node.sent == [bytes(row.attempts.get().raw) for row in rows[1:]]


def test_a_call_that_is_mined_after_its_cancellation_began_is_charged(
    user: User, accept: Accept, chain: Chain
) -> None:
    row = accept(validity=until(100))
    get_chain_client().send_raw_transactions([bytes(row.attempts.get().raw)])
    broadcast_all(now=later(101))
    row.refresh_from_db()
    assert row.terminal_status == "Expired"

    chain.mine(settings.CONFIRMATIONS)
    assert track() == 1

    row.refresh_from_db()
    call = row.attempts.get(kind="call")
    assert (row.status, row.transaction_hash, row.failure_code) == ("Success", call.transaction_hash, "")
    assert row.real_cost == -CreditEntry.objects.get(source="RELAY_TRANSACTION").amount > 0
    # The rest of the self-transfer has no effect.
    assert broadcast_all(now=later(102)) == 0


@pytest.mark.parametrize("state", ["begun", "reverted", "settled"])
def test_a_cancellation_begins_once(accept: Accept, settle: Settle, state: str) -> None:
    row = accept()
    attempt = row.attempts.get()
    if state == "begun":
        assert begin_cancellation(attempt)
    elif state == "reverted":
        RelayTransaction.objects.update(terminal_status="Failed")
    else:
        settle()
    count = Attempt.objects.count()
    assert not begin_cancellation(attempt)
    assert Attempt.objects.count() == count


def begin_cancellation(attempt: Attempt) -> bool:
    return cancellation.begin(
        attempt=attempt,
        terminal_status=RelayTransaction.Status.CANCELLED,
        code="for-a-test",
        detail="For a test.",
        fees=Fees(3 * GWEI, GWEI, 2 * GWEI),
        now=timezone.now(),
    )


def assert_not_cancelled(row: RelayTransaction) -> None:
    """It is refused by its rows, before the node is asked."""
    before = everything()
    with node_away(), pytest.raises(AlreadyBroadcast):
        cancellation.cancel_unsent(relay_transaction_id=row.pk, now=timezone.now())
    assert everything() == before


def test_staff_cannot_cancel_calls_already_broadcast_settled_or_cancelled(
    accept: Accept, settle: Callable[[], int], chain: Chain
) -> None:
    sent = accept()
    broadcast_all()
    assert_not_cancelled(sent)
    settle()
    assert_not_cancelled(sent)
    cancelled = accept()
    cancellation.cancel_unsent(relay_transaction_id=cancelled.pk, now=timezone.now())
    assert_not_cancelled(cancelled)


def test_a_call_that_is_sent_before_the_lock_is_taken_is_not_cancelled(
    accept: Accept, node: FaultyClient
) -> None:
    row = accept()
    node.meanwhile("head", broadcast_all)
    with pytest.raises(AlreadyBroadcast):
        cancellation.cancel_unsent(relay_transaction_id=row.pk, now=timezone.now())
    row.refresh_from_db()
    attempt = row.attempts.get()
    assert (row.terminal_status, attempt.kind, attempt.status) == ("", "call", "sent")
    assert node.sent == [bytes(attempt.raw)]


def test_without_a_node_staff_cancel_nothing(accept: Accept) -> None:
    row = accept()
    before = everything()
    with node_away(), pytest.raises(NodeUnavailable):
        cancellation.cancel_unsent(relay_transaction_id=row.pk, now=timezone.now())
    assert everything() == before


def test_an_expired_call_is_not_sent_by_the_slower_worker(accept: Accept, node: FaultyClient) -> None:
    row = accept(validity=window(0, int(timezone.now().timestamp()) + 100))
    faster = partial(broadcast_all, now=later(101))
    node.meanwhile("head", faster)

    broadcast_all(now=later(101))

    assert bytes(row.attempts.get(kind="call").raw) not in node.sent
    assert row.attempts.filter(kind="cancellation").count() == 1


def test_a_call_replaced_in_between_is_not_cancelled(
    accept: Accept, node: FaultyClient, chain: Chain, settle: Callable[[], int]
) -> None:
    row = accept()
    chain.set_base_fee(row.attempts.get().max_fee_per_gas_wei + GWEI)
    node.meanwhile("send_raw_transactions", broadcast_all)

    broadcast_all()

    row.refresh_from_db()
    assert row.terminal_status == ""
    assert [attempt.kind for attempt in row.attempts.all()] == ["call", "call"]
    assert settle() == 1
    row.refresh_from_db()
    assert row.status == "Success"
