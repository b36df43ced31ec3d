"""
Send stored bytes to the node, in the order of account nonces.

Sending the same bytes twice does no harm, so no lock is held and any number of
workers may run. The rows say what is left to send.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import F
from django.db.models.functions import Coalesce

from gateway.chain.client import get_chain_client
from gateway.chain.config import get_chain
from gateway.chain.fees import Fees
from gateway.chain.types import Head, SendKind, SendOutcome
from gateway.common.db import isolated
from relay.models import Attempt, RelayTransaction
from relay.services import cancellation, replacement
from relay.services.replacement import fees_today

_Status = RelayTransaction.Status


def broadcast(*, relayer_id: int | None = None, now: datetime) -> int:
    """
    Send the unsent attempts of one relayer, or of all; return how many the node took.

    Validity and predecessors are checked once more before the first broadcast: a
    call that could only burn gas is cancelled instead.

    Raises:
        NodeUnavailable: no node answered; the bytes stay for the next try.
    """
    unsent = (
        Attempt.objects.unsent()
        .filter(chain_id=get_chain().id)
        .select_related("relay_transaction")
        .in_nonce_order()
        .without_payload()
    )
    attempts = list(unsent if relayer_id is None else unsent.filter(relayer_id=relayer_id))
    if not attempts:
        return 0
    head = get_chain_client().head()
    fees = fees_today(head=head)
    sent = 0
    blocked_relayers: set[int] = set()
    for batch in _batches(attempts):
        sendable = []
        for attempt in batch:
            if attempt.relayer_id in blocked_relayers:
                # Lower account nonces of its relayer have not reached the node.
                continue
            if not _cancelled_instead(attempt, head, fees, now):
                sendable.append(attempt)
        accepted, unreachable = _send(attempts=sendable, fees=fees, now=now)
        sent += accepted
        blocked_relayers |= unreachable
    return sent


def resend(*, now: datetime) -> int:
    """
    Send again what was broadcast a while ago and is not mined, since nodes drop transactions; return how many.

    Raises:
        NodeUnavailable: no node answered.
    """
    overdue = list(
        Attempt.objects.broadcasted()
        .filter(chain_id=get_chain().id, sent_at__lt=now - timedelta(seconds=settings.RELAY_RESEND_SECONDS))
        .select_related("relay_transaction")
        .in_nonce_order()[:200]
    )
    if not overdue:
        return 0
    accepted, _ = _send(attempts=overdue, fees=fees_today(head=get_chain_client().head()), now=now)
    return accepted


def broadcast_again(*, relay_transaction_id: int, now: datetime) -> int:
    """
    Send the transaction's stored bytes now, for staff; return how many attempts the node took.

    An attempt that was never sent is sent together with all that its relayer has signed,
    in the order of account nonces; one that was sent before is sent alone.

    Raises:
        NodeUnavailable: no node answered; the bytes stay for the next try.
    """
    own = Attempt.objects.filter(relay_transaction_id=relay_transaction_id)
    unsent = own.unsent().first()
    if unsent is not None:
        return broadcast(relayer_id=unsent.relayer_id, now=now)
    unmined = list(own.broadcasted().select_related("relay_transaction").in_nonce_order())
    accepted, _ = _send(attempts=unmined, fees=fees_today(head=get_chain_client().head()), now=now)
    return accepted


def _batches(attempts: Sequence[Attempt]) -> list[list[Attempt]]:
    """
    Split into batches, each with at most one call per channel, in each relayer's order.

    If the node refuses a call, those behind it in its channel must not have been sent with it.
    """
    batches: list[list[Attempt]] = []
    numbers: dict[int, int] = {}
    channels: dict[int, set[tuple[str, str, int]]] = {}
    for attempt in attempts:
        relayer_id, row = attempt.relayer_id, attempt.relay_transaction
        channel = (row.key_manager_address, row.controller_address, row.channel)
        if channel in channels.setdefault(relayer_id, set()):
            numbers[relayer_id] += 1
            channels[relayer_id].clear()
        channels[relayer_id].add(channel)
        number = numbers.setdefault(relayer_id, 0)
        if number == len(batches):
            batches.append([])
        batches[number].append(attempt)
    return batches


def _cancelled_instead(attempt: Attempt, head: Head, fees: Fees, now: datetime) -> bool:
    """Cancel a call that could only burn gas, unless that has begun; return whether it is such a call."""
    transaction = attempt.relay_transaction
    if attempt.kind == Attempt.Kind.CANCELLATION:
        return False
    if transaction.expires_before(max(head.timestamp, int(now.timestamp())) + get_chain().block_seconds):
        status, code, detail = (
            _Status.EXPIRED,
            "relay-call-expired",
            "Its validity ended before it was sent.",
        )
    elif lost_its_predecessor(transaction):
        status, code, detail = (
            _Status.CANCELLED,
            cancellation.PREDECESSOR_FAILED,
            "A call before it in its channel failed.",
        )
    else:
        return False
    with isolated(f"cancelling {attempt.transaction_hash}"):
        cancellation.begin(
            attempt=attempt, terminal_status=status, code=code, detail=detail, fees=fees, now=now
        )
    return True


def _send(*, attempts: Sequence[Attempt], fees: Fees, now: datetime) -> tuple[int, set[int]]:
    """Return how many the node took, and the relayers of those it did not answer; these are sent again later."""
    if not attempts:
        return 0, set()
    outcomes = get_chain_client().send_raw_transactions([bytes(attempt.raw) for attempt in attempts])
    accepted = [attempt for attempt, outcome in zip(attempts, outcomes, strict=True) if _is_accepted(outcome)]
    _mark_sent(accepted, now)
    unreachable = set()
    for attempt, outcome in zip(attempts, outcomes, strict=True):
        if outcome.kind in {SendKind.UNDERPRICED, SendKind.REFUSED}:
            with isolated(f"the send error of {attempt.transaction_hash}"):
                handle_send_error(attempt=attempt, outcome=outcome, fees=fees, now=now)
        elif outcome.kind == SendKind.UNREACHABLE:
            unreachable.add(attempt.relayer_id)
            _store_message(attempt=attempt, outcome=outcome)
    return len(accepted), unreachable


def _is_accepted(outcome: SendOutcome) -> bool:
    """A nonce that is too low was used by these bytes or by others; the tracker finds out which."""
    return outcome.kind in {SendKind.ACCEPTED, SendKind.NONCE_TOO_LOW}


def _mark_sent(attempts: Sequence[Attempt], now: datetime) -> None:
    """Update conditionally: what the tracker or a newer attempt has written meanwhile stays."""
    Attempt.objects.filter(
        pk__in=[attempt.pk for attempt in attempts], status__in=[Attempt.Status.SIGNED, Attempt.Status.SENT]
    ).update(status=Attempt.Status.SENT, sent_at=now, first_sent_at=Coalesce(F("first_sent_at"), now))
    RelayTransaction.objects.filter(
        pk__in=[attempt.relay_transaction_id for attempt in attempts], status=_Status.PENDING
    ).update(status=_Status.SUBMITTED)


def lost_its_predecessor(transaction: RelayTransaction) -> bool:
    """Return whether the call before this follower in its channel cannot be executed any more."""
    if not transaction.is_follower:
        return False
    predecessor = (
        RelayTransaction.objects.active()
        .of_channel(
            chain_id=transaction.chain_id,
            key_manager=transaction.key_manager_address,
            controller=transaction.controller_address,
            channel=transaction.channel,
        )
        # A repeat of a failed predecessor was accepted later, and its account nonce comes later too.
        .filter(relay_nonce=transaction.relay_nonce - 1, pk__lt=transaction.pk)
        .values_list("terminal_status", "status")
        .first()
    )
    if predecessor is None:
        return True
    terminal_status, status = predecessor
    return bool(terminal_status) and status in RelayTransaction.IN_PROGRESS


def _store_message(*, attempt: Attempt, outcome: SendOutcome) -> None:
    """Store the node's error message for staff."""
    message = outcome.message[:500]
    if message != attempt.node_message:
        Attempt.objects.filter(pk=attempt.pk).update(node_message=message)


def handle_send_error(*, attempt: Attempt, outcome: SendOutcome, fees: Fees, now: datetime) -> None:
    """
    Bump the fees where they were the reason; cancel a call that the node refuses for good.

    A self-transfer that is refused stays and is sent again by the sweep: the account
    nonce must be used up, and the reason (a relayer without funds, high gas prices) passes.
    """
    _store_message(attempt=attempt, outcome=outcome)
    if outcome.kind == SendKind.UNDERPRICED and replacement.replace(
        attempt_id=attempt.pk, fees=fees, now=now
    ):
        return
    if attempt.kind == Attempt.Kind.CALL:
        cancellation.begin(
            attempt=attempt,
            terminal_status=RelayTransaction.Status.CANCELLED,
            code="refused-by-node",
            detail=f"The node refused the transaction: {outcome.message[:300]}",
            fees=fees,
            now=now,
        )


def sweep(*, now: datetime) -> int:
    """
    Broadcast what waits, relayer by relayer, and again what was sent long ago; return how many the node took.

    An error of one relayer's attempts is logged and holds up no other relayer.

    Raises:
        NodeUnavailable: no node answered.
    """
    unsent = Attempt.objects.unsent().filter(chain_id=get_chain().id)
    relayer_ids = list(unsent.values_list("relayer_id", flat=True).distinct().order_by("relayer_id"))
    sent = 0
    for relayer_id in relayer_ids:
        with isolated(f"broadcasting for relayer {relayer_id}"):
            sent += broadcast(relayer_id=relayer_id, now=now)
    return sent + resend(now=now)
