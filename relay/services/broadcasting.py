"""
Broadcasting: stored bytes go to the node, in the order of account nonces.

Sending the same bytes twice does no harm, so no lock is held and any number of
workers may run. The rows say what is left to do; the messages merely hurry.

Followers: calls accepted behind others of their channel, whose fate they share while they are unsent.

What to do when the node does not take an attempt's bytes.

The sweep: finds by itself the work whose message was lost.
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
from gateway.common.db import try_advisory_lock
from relay.models import Attempt, RelayTransaction
from relay.services import cancellation, replacement
from relay.services.isolation import isolated
from relay.services.replacement import fees_today

_Status = RelayTransaction.Status


def broadcast(*, relayer_id: int | None = None, now: datetime) -> int:
    """
    Send what the relayer, or without one every relayer, has signed and not yet sent; return how many the node took.

    Validity and predecessors are checked once more before the first broadcast: a
    call that could only burn gas becomes a dead end instead.

    Raises:
        NodeUnavailable: no node answered; the bytes stay for the next try.
    """
    waiting = Attempt.objects.unsent().select_related("relay_transaction").in_nonce_order().without_question()
    found = list(waiting if relayer_id is None else waiting.filter(relayer_id=relayer_id))
    if not found:
        return 0
    head = get_chain_client().head()
    fees = fees_today(head=head)
    sent = 0
    held_up: set[int] = set()
    for wave in _waves(found):
        sendable = []
        for attempt in wave:
            if attempt.relayer_id in held_up:
                # It needs account nonces that the node does not hold yet.
                continue
            if not _ended_instead(attempt, head, fees, now):
                sendable.append(attempt)
        taken, left_open = _send(attempts=sendable, fees=fees, now=now)
        sent += taken
        held_up |= left_open
    return sent


def resend(*, now: datetime) -> int:
    """
    Send again what was broadcast a while ago and is not mined, since nodes drop transactions; return how many.

    Raises:
        NodeUnavailable: no node answered.
    """
    silent_since = now - timedelta(seconds=settings.RELAY_RESEND_SECONDS)
    silent = list(
        Attempt.objects.afloat()
        .filter(sent_at__lt=silent_since)
        .select_related("relay_transaction")
        .in_nonce_order()[:200]
    )
    if not silent:
        return 0
    taken, _ = _send(attempts=silent, fees=fees_today(head=get_chain_client().head()), now=now)
    return taken


def broadcast_again(*, relay_transaction_id: int, now: datetime) -> int:
    """
    Send the transaction's stored bytes now, for staff; return how many attempts the node took.

    An attempt that was never sent leaves together with all that its relayer has signed,
    in the order of account nonces; one that was sent before is sent alone.

    Raises:
        NodeUnavailable: no node answered; the bytes stay for the next try.
    """
    own = Attempt.objects.filter(relay_transaction_id=relay_transaction_id)
    unsent = own.unsent().first()
    if unsent is not None:
        return broadcast(relayer_id=unsent.relayer_id, now=now)
    silent = list(own.afloat().select_related("relay_transaction").in_nonce_order())
    taken, _ = _send(attempts=silent, fees=fees_today(head=get_chain_client().head()), now=now)
    return taken


def _waves(attempts: Sequence[Attempt]) -> list[list[Attempt]]:
    """
    Split into batches, each with at most one call per channel, in each relayer's order.

    If the node refuses a call, those behind it in its channel must not have left with it.
    """
    waves: list[list[Attempt]] = []
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
        if number == len(waves):
            waves.append([])
        waves[number].append(attempt)
    return waves


def _ended_instead(attempt: Attempt, head: Head, fees: Fees, now: datetime) -> bool:
    """Begin the dead end of a call that could only burn gas, unless it has begun; return whether it is such a call."""
    row = attempt.relay_transaction
    if attempt.kind == Attempt.Kind.CANCELLATION:
        return False
    if row.expires_before(max(head.timestamp, int(now.timestamp())) + get_chain().block_seconds):
        ends_as, code, detail = (
            _Status.EXPIRED,
            "relay-call-expired",
            "Its validity ended before it was sent.",
        )
    elif lost_its_predecessor(row=row):
        ends_as, code, detail = (
            _Status.CANCELLED,
            cancellation.PREDECESSOR_FAILED,
            "A call before it in its channel failed.",
        )
    else:
        return False
    with isolated(f"the dead end of {attempt.transaction_hash}"):
        cancellation.begin(attempt=attempt, ends_as=ends_as, code=code, detail=detail, fees=fees, now=now)
    return True


def _send(*, attempts: Sequence[Attempt], fees: Fees, now: datetime) -> tuple[int, set[int]]:
    """Return how many the node took, and the relayers with unanswered attempts; those are sent again later."""
    if not attempts:
        return 0, set()
    outcomes = get_chain_client().send_raw_transactions([bytes(attempt.raw) for attempt in attempts])
    taken = [attempt for attempt, outcome in zip(attempts, outcomes, strict=True) if _is_out(outcome)]
    _mark_sent(taken, now)
    left_open = set()
    for attempt, outcome in zip(attempts, outcomes, strict=True):
        if outcome.kind in {SendKind.UNDERPRICED, SendKind.REFUSED}:
            with isolated(f"the refusal of {attempt.transaction_hash}"):
                handle_refusal(attempt=attempt, outcome=outcome, fees=fees, now=now)
        elif outcome.kind == SendKind.UNREACHABLE:
            left_open.add(attempt.relayer_id)
            note_message(attempt=attempt, outcome=outcome)
    return len(taken), left_open


def _is_out(outcome: SendOutcome) -> bool:
    """A nonce that is too low was used by these bytes or by others; the tracker finds out which."""
    return outcome.kind in {SendKind.ACCEPTED, SendKind.NONCE_TOO_LOW}


def _mark_sent(attempts: Sequence[Attempt], now: datetime) -> None:
    """Conditional updates: a tracker that was faster, or a newer attempt, has the last word."""
    Attempt.objects.filter(
        pk__in=[attempt.pk for attempt in attempts], status__in=[Attempt.Status.SIGNED, Attempt.Status.SENT]
    ).update(status=Attempt.Status.SENT, sent_at=now, first_sent_at=Coalesce(F("first_sent_at"), now))
    RelayTransaction.objects.filter(
        pk__in=[attempt.relay_transaction_id for attempt in attempts], status=_Status.PENDING
    ).update(status=_Status.SUBMITTED)


def lost_its_predecessor(*, row: RelayTransaction) -> bool:
    """Return whether the call before this follower in its channel cannot be executed any more."""
    if not row.is_follower:
        return False
    predecessor = (
        RelayTransaction.objects.standing()
        .of_channel(
            key_manager=row.key_manager_address, controller=row.controller_address, channel=row.channel
        )
        # A repeat of a failed predecessor was accepted later, and its account nonce comes later too.
        .filter(relay_nonce=row.relay_nonce - 1, pk__lt=row.pk)
        .values_list("ends_as", "status")
        .first()
    )
    if predecessor is None:
        return True
    ends_as, status = predecessor
    return bool(ends_as) and status in RelayTransaction.IN_PROGRESS


def note_message(*, attempt: Attempt, outcome: SendOutcome) -> None:
    """Keep the node's own words for staff."""
    message = outcome.message[:500]
    if message != attempt.node_message:
        Attempt.objects.filter(pk=attempt.pk).update(node_message=message)


def handle_refusal(*, attempt: Attempt, outcome: SendOutcome, fees: Fees, now: datetime) -> None:
    """
    Offer more where the price was the reason; end a call that the node refuses for good.

    A self-transfer that is refused stays and is sent again by the sweep: the account
    nonce must be used up, and the reason (an empty relayer, a costly hour) passes.
    """
    note_message(attempt=attempt, outcome=outcome)
    if outcome.kind == SendKind.UNDERPRICED and replacement.replace(
        attempt_id=attempt.pk, fees=fees, now=now
    ):
        return
    if attempt.kind == Attempt.Kind.CALL:
        cancellation.begin(
            attempt=attempt,
            ends_as=RelayTransaction.Status.CANCELLED,
            code="refused-by-node",
            detail=f"The node refused the transaction: {outcome.message[:300]}",
            fees=fees,
            now=now,
        )


# A worker that got the message needs about this long, in seconds.
_HEAD_START = timedelta(seconds=2)


def sweep(*, now: datetime) -> int:
    """
    Broadcast what was signed a while ago, and again what was sent long ago; return how many the node took.

    Raises:
        NodeUnavailable: no node answered.
    """
    with try_advisory_lock("relay.sweep") as acquired:
        if not acquired:
            return 0
        waiting = Attempt.objects.unsent().filter(created_at__lt=now - _HEAD_START)
        relayer_ids = list(waiting.values_list("relayer_id", flat=True).distinct().order_by("relayer_id"))
        sent = 0
        for relayer_id in relayer_ids:
            with isolated(f"broadcasting for relayer {relayer_id}"):
                sent += broadcast(relayer_id=relayer_id, now=now)
        return sent + resend(now=now)
