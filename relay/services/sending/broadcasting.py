"""
Send stored bytes to the nodes, in the order of account nonces.

Sending the same bytes twice does no harm, so no lock is held and any number of
workers may run.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any, NamedTuple

from gateway.chain.client import get_chain_client
from gateway.chain.config import get_chain
from gateway.chain.errors import NodeUnavailable
from gateway.chain.fees import Fees
from gateway.chain.lsp25 import valid_until_of
from gateway.chain.types import Head, SendKind, SendOutcome
from gateway.common import db, metrics
from gateway.common.statements import Statements
from gateway.common.tasks import isolated
from relay.models import PREDECESSOR_FAILED, SQL, Attempt, RelayTransaction
from relay.services.fleet import tips
from relay.services.sending import cancellation, replacement
from relay.services.sending.replacement import current_fees

_Status = RelayTransaction.Status


class _Signed(NamedTuple):
    """An attempt with its signed bytes, and the columns of its call that decide whether they may be sent."""

    id: int
    relay_transaction_id: int
    relayer_id: int
    kind: str
    transaction_hash: str
    raw: bytes
    node_message: str
    tip_wei: int
    channel: tuple[str, str, int]
    valid_until: int | None
    is_follower: bool


class _Backoff:
    """
    Exponential backoff for attempts that a node has refused; later attempts of the same relayer wait too.

    Kept in memory: after a restart, or in another worker, the attempts are sent at once.
    """

    def __init__(self) -> None:
        self._failures: dict[int, tuple[int, datetime]] = {}

    def holds(self, attempt: _Signed, now: datetime) -> bool:
        """Return whether it is too early to send the attempt again."""
        _, until = self._failures.get(attempt.id, (0, now))
        return now < until

    def failed(self, attempt: _Signed, now: datetime) -> None:
        """Double the time until the attempt may be sent again."""
        if len(self._failures) >= _MOST_BACKED_OFF:
            self._failures.clear()
        count, _ = self._failures.get(attempt.id, (0, now))
        seconds = min(_LONGEST_BACKOFF_SECONDS, 2**count)
        self._failures[attempt.id] = count + 1, now + timedelta(seconds=seconds)

    def ended(self, attempts: Iterable[_Signed]) -> None:
        """Forget attempts that a node accepted."""
        for attempt in attempts:
            self._failures.pop(attempt.id, None)


# Shorter than a block (12 s).
_LONGEST_BACKOFF_SECONDS = 8
_MOST_BACKED_OFF = 10_000
_backoff = _Backoff()


class _CurrentChain:
    """The chain's time and fees; both are read from the nodes on first use."""

    def __init__(self, now: datetime) -> None:
        self._now = int(now.timestamp())

    @cached_property
    def time(self) -> int:
        """
        The later of the chain's time and ours.

        A quorum of nodes must agree on the chain's time, because one node with a time in the future could expire calls.
        Without a quorum, only our clock counts.
        """
        client, confirmations = get_chain_client(), get_chain().confirmations
        try:
            view = client.read_chain(transaction_hashes=[], accounts=[], confirmations=confirmations)
        except NodeUnavailable:
            return self._now
        return max(self._now, view.head.timestamp)

    @property
    def fees(self) -> Fees:
        return current_fees(head=self._head)

    @cached_property
    def _head(self) -> Head:
        return get_chain_client().head()


def broadcast(*, relayer_id: int | None = None, now: datetime) -> int:
    """
    Send the unsent attempts of one relayer, or of all; return how many the node accepted.

    Validity and predecessors are checked once more before the first broadcast: a
    call that could only burn gas is cancelled instead.

    Raises:
        NodeUnavailable: no node responded; the bytes stay for the next try.
    """
    attempts = _read(_Sql.unsent, {"relayer": relayer_id})
    if not attempts:
        return 0
    chain = _CurrentChain(now)
    sent = 0
    blocked_relayers: set[int] = set()
    for batch in _batches(attempts):
        # Lower account nonces of such a relayer have not reached the node, so its later attempts must wait too.
        blocked_relayers |= {attempt.relayer_id for attempt in batch if _backoff.holds(attempt, now)}
        free = [attempt for attempt in batch if attempt.relayer_id not in blocked_relayers]
        accepted, unreachable = _send(_still_wanted(free, chain, now), chain, now)
        sent += accepted
        blocked_relayers |= unreachable
    if blocked_relayers and not sent:
        get_chain_client().head()  # Raises where no node responds at all.
    return sent


def resend(*, now: datetime) -> int:
    """
    Resend attempts that were broadcast a while ago and are not mined, since nodes drop transactions; return how many.

    Raises:
        NodeUnavailable: no node responded.
    """
    overdue = _read(_Sql.overdue, {"before": now - timedelta(seconds=get_chain().pace.resend_seconds)})
    return _send_again([attempt for attempt in overdue if not _backoff.holds(attempt, now)], now)


def broadcast_again(*, relay_transaction_id: int, now: datetime) -> int:
    """
    Send the transaction's stored bytes now, for staff; return how many attempts the node accepted.

    An attempt that was never sent is sent together with all that its relayer has signed,
    in the order of account nonces; an attempt that was sent before is sent without others.

    Raises:
        NodeUnavailable: no node responded; the bytes stay for the next try.
    """
    unsent = Attempt.objects.filter(relay_transaction_id=relay_transaction_id).unsent().first()
    if unsent is not None:
        return broadcast(relayer_id=unsent.relayer_id, now=now)
    return _send_again(_read(_Sql.unmined, {"transaction": relay_transaction_id}), now)


def _send_again(attempts: Sequence[_Signed], now: datetime) -> int:
    accepted, unreachable = _send(attempts, _CurrentChain(now), now)
    if unreachable and not accepted:
        get_chain_client().head()  # Raises where no node responds at all.
    return accepted


def sweep(*, now: datetime) -> int:
    """
    Broadcast waiting calls, relayer by relayer, and resend overdue ones; return how many the node accepted.

    An error in one relayer's attempts is logged and delays no other relayer.

    Raises:
        NodeUnavailable: no node responded.
    """
    relayer_ids = db.all_rows(_Sql.relayers_with_unsent, {"chain": get_chain().id})
    sent = 0
    for (relayer_id,) in relayer_ids:
        with isolated(f"broadcasting for relayer {relayer_id}"):
            sent += broadcast(relayer_id=relayer_id, now=now)
    return sent + resend(now=now)


def _read(statement: str, params: Mapping[str, Any]) -> list[_Signed]:
    rows = db.all_rows(statement, {"chain": get_chain().id, **params})
    return [
        _Signed._make(
            (*columns, (key_manager, controller, channel), valid_until_of(int(validity)), is_follower)
        )
        for *columns, key_manager, controller, channel, validity, is_follower in rows
    ]


def _batches(attempts: Iterable[_Signed]) -> list[list[_Signed]]:
    """
    Split attempts into batches with at most one call per channel, in each relayer's order.

    If the node refuses a call, the later calls of its channel must not have been sent in the same batch.
    """
    batches: list[list[_Signed]] = []
    numbers: dict[int, int] = {}
    channels: dict[int, set[tuple[str, str, int]]] = {}
    for attempt in attempts:
        relayer_id = attempt.relayer_id
        if attempt.channel in channels.setdefault(relayer_id, set()):
            numbers[relayer_id] += 1
            channels[relayer_id].clear()
        channels[relayer_id].add(attempt.channel)
        number = numbers.setdefault(relayer_id, 0)
        if number == len(batches):
            batches.append([])
        batches[number].append(attempt)
    return batches


def _still_wanted(attempts: Sequence[_Signed], chain: _CurrentChain, now: datetime) -> list[_Signed]:
    """Return the attempts that may be sent, and begin to cancel calls that could only burn gas."""
    calls = [attempt for attempt in attempts if attempt.kind == Attempt.Kind.CALL]
    followers = [call.relay_transaction_id for call in calls if call.is_follower]
    lost = (
        {row_id for (row_id,) in db.all_rows(_Sql.lost_followers, {"ids": followers})} if followers else set()
    )
    dropped = set()
    for call in calls:
        if _expires(call, chain):
            reason = (_Status.EXPIRED, "relay-call-expired", "Its validity ended before it was sent.")
        elif call.relay_transaction_id in lost:
            detail = "A call before it in its channel failed."
            reason = (_Status.CANCELLED, PREDECESSOR_FAILED, detail)
        else:
            continue
        dropped.add(call.id)
        with isolated(f"cancelling {call.transaction_hash}"):
            _cancel(call, *reason, chain.fees, now)
    return [attempt for attempt in attempts if attempt.id not in dropped]


def _expires(call: _Signed, chain: _CurrentChain) -> bool:
    """Return whether the call's validity ends before a block could take it; an open end never does."""
    if call.valid_until is None:
        return False
    return call.valid_until < chain.time + get_chain().block_seconds


def _cancel(call: _Signed, status: _Status, code: str, detail: str, fees: Fees, now: datetime) -> None:
    attempt = Attempt.objects.get(pk=call.id)
    cancellation.begin(attempt=attempt, terminal_status=status, code=code, detail=detail, fees=fees, now=now)


def _send(attempts: Sequence[_Signed], chain: _CurrentChain, now: datetime) -> tuple[int, set[int]]:
    """Return how many attempts the node accepted, and the relayers of attempts that are to be retried later."""
    if not attempts:
        return 0, set()
    outcomes = get_chain_client().send_raw_transactions([attempt.raw for attempt in attempts])
    tips.note(
        (
            tips.Evidence(attempt.id, int(attempt.tip_wei), outcome)
            for attempt, outcome in zip(attempts, outcomes, strict=True)
            # What was never refused tells nothing about a tip that is required.
            if outcome.least_tip_wei or attempt.node_message
        ),
        now=now,
    )
    accepted = [attempt for attempt, outcome in zip(attempts, outcomes, strict=True) if _is_accepted(outcome)]
    _mark_sent(accepted, now)
    _backoff.ended(accepted)
    unreachable = set()
    for attempt, outcome in zip(attempts, outcomes, strict=True):
        if outcome.kind in {SendKind.LATER, SendKind.REFUSED}:
            _backoff.failed(attempt, now)
        if outcome.kind in {SendKind.UNDERPRICED, SendKind.REFUSED}:
            with isolated(f"the send error of {attempt.transaction_hash}"):
                row = Attempt.objects.get(pk=attempt.id)
                handle_send_error(attempt=row, outcome=outcome, fees=chain.fees, now=now)
        elif outcome.kind in {SendKind.LATER, SendKind.UNREACHABLE}:
            unreachable.add(attempt.relayer_id)
            if outcome.message[:_MESSAGE_LENGTH] != attempt.node_message:
                _store_message(attempt_id=attempt.id, outcome=outcome)
    return len(accepted), unreachable


def _is_accepted(outcome: SendOutcome) -> bool:
    """Treat "nonce too low" as accepted: this attempt or another one used the nonce, and the tracker will see which."""
    return outcome.kind in {SendKind.ACCEPTED, SendKind.NONCE_TOO_LOW}


def _mark_sent(attempts: Sequence[_Signed], now: datetime) -> None:
    if attempts:
        params = {
            "attempts": [attempt.id for attempt in attempts],
            "transactions": [attempt.relay_transaction_id for attempt in attempts],
            "now": now,
        }
        for (waited_seconds,) in db.all_rows(_Sql.mark_sent, params):
            if waited_seconds is not None:
                metrics.BROADCAST.observe(waited_seconds)


_MESSAGE_LENGTH = 500


def _store_message(*, attempt_id: int, outcome: SendOutcome) -> None:
    """Store the node's error message for staff."""
    Attempt.objects.filter(pk=attempt_id).update(node_message=outcome.message[:_MESSAGE_LENGTH])


def handle_send_error(*, attempt: Attempt, outcome: SendOutcome, fees: Fees, now: datetime) -> None:
    """
    Bump the fees if they were the reason; cancel a call that the node will never accept.

    A call whose fees may not be bumped waits for lower gas prices, until it is overdue.
    A refused self-transfer is kept and resent by the sweep: the account nonce must be
    used up, and the reason (a relayer without funds, high gas prices) is temporary.
    """
    _store_message(attempt_id=attempt.pk, outcome=outcome)
    if outcome.kind == SendKind.UNDERPRICED:
        if not replacement.replace(attempt_id=attempt.pk, fees=fees, now=now):
            cancellation.begin_if_overdue(attempt=attempt, fees=fees, now=now)
    elif attempt.kind == Attempt.Kind.CALL:
        cancellation.begin(
            attempt=attempt,
            terminal_status=RelayTransaction.Status.CANCELLED,
            code="refused-by-node",
            detail=f"The node refused the transaction: {outcome.message[:300]}",
            fees=fees,
            now=now,
        )


class _Sql(Statements, file=__file__, shared=SQL):
    unsent: str
    relayers_with_unsent: str
    overdue: str
    unmined: str
    lost_followers: str
    mark_sent: str
