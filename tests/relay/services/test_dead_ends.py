"""Calls that cannot be executed any more: their account nonce is used up, and only then do they end."""

import secrets
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.conf import settings
from django.utils import timezone

from credits.models import CreditEntry, HoldStatus
from credits.queries import balance_of
from credits.services.reconciliation import find_differences
from gateway.chain.client import get_chain_client
from gateway.chain.fees import Fees
from gateway.chain.types import SendKind
from relay.models import Attempt, Relayer, RelayTransaction
from relay.services import broadcasting
from relay.services import cancellation as relay_cancellation
from tests.relay.chain import GWEI, Chain, MeddlingClient
from tests.relay.conftest import LYX
from tests.relay.signing import window
from tests.relay.workers import broadcast_all, later, track
from users.models import User

pytestmark = pytest.mark.django_db
Accept = Callable[..., RelayTransaction]
Settle = Callable[[], int]


def until(seconds: int) -> int:
    """Return the validity of a call that ends that many seconds from now."""
    return window(0, int(timezone.now().timestamp()) + seconds)


def assert_goes_on(accept: Accept, settle: Settle, relayer: Relayer, chain: Chain) -> None:
    """The relayer takes the next call on the next account nonce, and no account nonce was left out."""
    Relayer.objects.exclude(pk=relayer.pk).update(is_active=False)
    row = accept(channel=secrets.randbits(120))
    settle()
    row.refresh_from_db()
    relayer.refresh_from_db()
    assert (row.status, row.relayer) == ("Success", relayer)
    assert relayer.next_account_nonce == chain.account_nonce(relayer.address)


def test_a_call_that_expired_before_its_first_broadcast_is_never_sent(
    user: User, accept: Accept, node: MeddlingClient, chain: Chain, settle: Settle
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
    told = chain.transaction(cancellation.transaction_hash)
    assert told["from"] == told["to"] == row.relayer.address.lower()
    assert [int(told[part], 16) for part in ("value", "gas", "nonce")] == [0, 21_000, call.account_nonce]
    assert told["input"] == "0x"

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
    assert_goes_on(accept, settle, row.relayer, chain)


def test_a_call_that_ends_with_the_next_block_is_not_worth_sending(
    accept: Accept, node: MeddlingClient
) -> None:
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
    row = accept(validity=window(0, int(start.timestamp()) + 100))
    answered = row.transaction_hash
    broadcast_all()
    track(now=start + timedelta(seconds=99))
    assert row.attempts.count() == 1

    track(now=start + timedelta(seconds=101))

    call, cancellation = row.attempts.order_by("sequence")
    assert (call.status, cancellation.kind) == ("replaced", "cancellation")
    for fee in ("max_fee_per_gas_wei", "max_priority_fee_per_gas_wei"):
        assert getattr(cancellation, fee) * 8 >= getattr(call, fee) * 9
    assert settle() == 1
    row.refresh_from_db()
    # The self-transfer is nothing that its wallet has ever heard of.
    assert (row.status, row.transaction_hash) == ("Expired", answered)
    assert balance_of(user) == before
    assert_goes_on(accept, settle, row.relayer, chain)


def test_a_relayer_emptied_after_signing_ends_the_call_once_it_has_money_again(
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
    assert_goes_on(accept, settle, row.relayer, chain)


def test_a_verdict_for_good_ends_the_call_with_the_nodes_words(
    user: User, accept: Accept, node: MeddlingClient, settle: Settle
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


def test_a_refusal_does_not_keep_others_from_being_sent(
    accept: Accept, node: MeddlingClient, relayers: list[Relayer]
) -> None:
    Relayer.objects.exclude(pk=relayers[0].pk).update(is_active=False)
    rows = [accept(channel=secrets.randbits(120)) for _ in range(3)]
    node.answer_next(SendKind.REFUSED)
    assert broadcast_all() == 2
    assert node.sent == [bytes(row.attempts.get().raw) for row in rows[1:]]


def test_a_call_that_was_sent_after_all_counts_though_its_dead_end_has_begun(
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
    # What is left of the self-transfer bothers nobody.
    assert broadcast_all(now=later(102)) == 0


@pytest.mark.parametrize("state", ["begun", "reverted", "settled"])
def test_a_dead_end_is_begun_once(accept: Accept, settle: Settle, state: str) -> None:
    row = accept()
    attempt = row.attempts.get()
    if state == "begun":
        assert begin(attempt)
    elif state == "reverted":
        RelayTransaction.objects.update(terminal_status="Failed")
    else:
        settle()
    count = Attempt.objects.count()
    assert not begin(attempt)
    assert Attempt.objects.count() == count


def begin(attempt: Attempt) -> bool:
    return relay_cancellation.begin(
        attempt=attempt,
        terminal_status=RelayTransaction.Status.CANCELLED,
        code="for-a-test",
        detail="For a test.",
        fees=Fees(3 * GWEI, GWEI, 2 * GWEI),
        now=timezone.now(),
    )
