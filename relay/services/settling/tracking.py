"""
At every new block, read from the chain the state of each attempt in progress, in a few batches.

The tracker may be killed at any point: the next run derives each step again from the chain
and the rows.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import NamedTuple

from gateway.chain.client import get_chain_client
from gateway.chain.config import get_chain
from gateway.chain.errors import NodeUnavailable
from gateway.chain.fees import Fees
from gateway.chain.lsp25 import valid_until_of
from gateway.chain.types import ChainView, Head, Receipt
from gateway.common import db, metrics
from gateway.common.statements import Statements
from gateway.common.tasks import isolated
from relay.models import SQL, Attempt, Relayer, RelayTransaction
from relay.services.fleet import losses, relayers, tips
from relay.services.sending import cancellation, gaps, replacement
from relay.services.sending.replacement import current_fees
from relay.services.settling import reorganisations, settlement

_Status = RelayTransaction.Status

# A used account nonce without a receipt counts as lost this many blocks beyond the confirmations.
_LOST_DEPTH = 20
_UNMINED = frozenset({Attempt.Status.SIGNED, Attempt.Status.SENT})
# For how many blocks nodes may disagree about a transaction before the tracker reports it.
_CONTRADICTION_BLOCKS = 10


class _Sql(Statements, file=__file__, shared=SQL):
    in_flight: str
    update_receipts: str


class _InFlight(NamedTuple):
    """An attempt of a call in progress, with the columns that the tracker compares with the chain."""

    id: int
    relay_transaction_id: int
    user_id: int
    relayer_id: int
    account_nonce: int
    kind: str
    status: str
    transaction_hash: str
    block_hash: str
    first_sent_at: datetime | None
    max_fee_per_gas_wei: Decimal
    is_superseded: bool
    # As stored from the receipt; None before the attempt is mined.
    succeeded: bool | None
    gas_used: int | None
    gas_price_wei: Decimal | None
    extra_fee_wei: Decimal
    validity: Decimal
    credit_wei: Decimal
    # Since when a block could have taken it, if its account nonce is the relayer's next one.
    waits_since: datetime


class Tracker:
    """Tracks each block at most once."""

    def __init__(self) -> None:
        self._newest: Head | None = None
        # By transaction hash: when the nodes first contradicted each other about the transaction.
        self._undecided_since: dict[str, datetime] = {}
        self._gaps = gaps.GapWatch()

    def track_new_block(self, *, now: datetime) -> int:
        """
        Track if a block has not been tracked yet; return how many relay transactions were settled.

        Raises:
            NodeUnavailable: no node responded; the next call retries. Or the nodes have contradicted each other about
                a transaction for ten blocks; all other transactions were tracked.
        """
        if get_chain_client().head() == self._newest:
            return 0
        # The block that a new process finds may be an old one of a chain that stands still, so it proves no delay.
        settled, view = _track(now=now, may_replace=self._newest is not None)
        self._note_undecided(view.undecided, now)
        self._gaps.fill(head=view.head, now=now)
        self._newest = view.head
        return settled

    def _note_undecided(self, undecided: Iterable[str], now: datetime) -> None:
        # A node is often one block behind the others, so only lasting contradictions are reported.
        self._undecided_since = {name: self._undecided_since.get(name, now) for name in undecided}
        patience = timedelta(seconds=_CONTRADICTION_BLOCKS * get_chain().block_seconds)
        lasting = [name for name, since in self._undecided_since.items() if since < now - patience]
        if lasting:
            raise NodeUnavailable(
                f"The chain nodes contradict each other about {lasting[0]}, {len(lasting)} transactions in all."
            )


def _track(*, now: datetime, may_replace: bool = True) -> tuple[int, ChainView]:
    """
    Update the rows from the chain; return how many relay transactions were settled, and the view of the chain.

    Without `may_replace`, attempts that blocks have left out stay as they are.

    Raises:
        NodeUnavailable: no node responded; the next run repeats the work.
    """
    accounts = relayers.in_service(now=now)
    relayers.catch_up(relayers=relayers.without_timeline(accounts), now=now)
    attempts = _attempts_in_flight()
    watch = reorganisations.watch()
    view = get_chain_client().read_chain(
        transaction_hashes=[attempt.transaction_hash for attempt in attempts],
        accounts=[relayer.address for relayer in accounts],
        confirmations=get_chain().confirmations,
        heights=watch.heights,
        finality=get_chain().finality,
    )
    if reorganisations.reopen_vanished(watch=watch, view=view, now=now):
        # Reopened calls are in progress again, so the chain is read once more for them.
        return _track(now=now, may_replace=may_replace)
    relayers.update_accounts(relayers=accounts, accounts=view.accounts, now=now)
    # Attempts that the nodes disagree about are left unchanged.
    attempts = [attempt for attempt in attempts if attempt.transaction_hash not in view.undecided]
    attempts = _update_receipts(attempts=attempts, view=view, now=now)
    settled = settlement.settle(confirmed=_confirmed(attempts, view), now=now)
    unmined = _unmined(attempts, view)
    settled += _settle_lost(attempts=unmined, accounts=accounts, view=view, now=now)
    losses.settle_ended(now=now)
    tips.review(now=now)
    # An account nonce that only this block made the next one has just begun to wait.
    next_nonces = {
        relayer.pk: relayer.mined_account_nonce
        for relayer in accounts
        if relayer.address in view.accounts
        and view.accounts[relayer.address].latest_nonce == relayer.mined_account_nonce
        and may_replace
    }
    _cancel_or_replace_stuck(attempts=unmined, head=view.head, next_nonces=next_nonces, now=now)
    return settled, view


def _attempts_in_flight() -> list[_InFlight]:
    return [_InFlight._make(row) for row in db.all_rows(_Sql.in_flight, {"chain": get_chain().id})]


def _confirmed(attempts: Sequence[_InFlight], view: ChainView) -> list[settlement.Confirmed]:
    """Keep confirmed attempts, with their receipts, sorted by user so that one batch locks few accounts."""
    deepest = view.head.number - get_chain().confirmations + 1
    return [
        settlement.Confirmed(
            attempt.id, attempt.relay_transaction_id, attempt.kind, int(attempt.credit_wei), receipt
        )
        for attempt in sorted(attempts, key=lambda attempt: attempt.user_id)
        if (receipt := view.receipts.get(attempt.transaction_hash)) and receipt.block_number <= deepest
    ]


def _unmined(attempts: Sequence[_InFlight], view: ChainView) -> list[_InFlight]:
    """Keep attempts whose account nonces none of our mined transactions has used."""
    used = {
        (attempt.relayer_id, attempt.account_nonce)
        for attempt in attempts
        if attempt.transaction_hash in view.receipts
    }
    return [attempt for attempt in attempts if (attempt.relayer_id, attempt.account_nonce) not in used]


def _settle_lost(
    *, attempts: Sequence[_InFlight], accounts: Sequence[Relayer], view: ChainView, now: datetime
) -> int:
    """
    Settle calls whose account nonce was used deep in the chain although none of their attempts has a receipt.

    Only a transaction from outside the service can have used it, so the relayer is quarantined.
    """
    addresses = {relayer.pk: relayer.address for relayer in accounts}
    lost = _passed_over(attempts, addresses, view)
    # A node behind a balancer may lag and not have the receipt yet, so only an account nonce used much deeper in the
    # chain counts as lost.
    lost = _never_mined(lost, addresses, view, blocks=get_chain().confirmations + _LOST_DEPTH)
    relayers.quarantine_used_elsewhere(attempt_ids=[attempt.id for attempt in lost], now=now)
    # Such a call has no block to watch for reorganisations, so wait until the transaction that overtook it is final.
    final_depth = view.head.number - view.final.number + 1 if view.final else get_chain().finality.blocks
    lost = _never_mined(lost, addresses, view, blocks=final_depth)
    ids = {attempt.relay_transaction_id for attempt in lost}
    return settlement.settle_lost(relay_transaction_ids=ids, now=now) if ids else 0


def _never_mined(
    attempts: Sequence[_InFlight], addresses: Mapping[int, str], view: ChainView, *, blocks: int
) -> list[_InFlight]:
    """
    Keep attempts whose account nonce was used this deep in the chain by no attempt of their call.

    The chain is read again: the first responses may span a new block, or a worker may have replaced an attempt after
    the rows were read.
    """
    if not attempts:
        return []
    calls = {attempt.relay_transaction_id for attempt in attempts}
    rows = Attempt.objects.filter(relay_transaction__in=calls)
    owners = dict(rows.values_list("transaction_hash", "relay_transaction_id"))
    again = get_chain_client().read_chain(
        transaction_hashes=list(owners),
        accounts=sorted({addresses[attempt.relayer_id] for attempt in attempts}),
        confirmations=blocks,
    )
    if again.head.number < view.head.number:
        return []
    mined = {owners[transaction_hash] for transaction_hash in (*again.receipts, *again.undecided)}
    return [
        attempt
        for attempt in _passed_over(attempts, addresses, again)
        if attempt.relay_transaction_id not in mined
    ]


def _passed_over(
    attempts: Sequence[_InFlight], addresses: Mapping[int, str], view: ChainView
) -> list[_InFlight]:
    """Keep attempts whose account nonce is below the confirmed one of their relayer."""
    return [
        attempt
        for attempt in attempts
        if (account := view.accounts.get(addresses[attempt.relayer_id]))
        and attempt.account_nonce < account.confirmed_nonce
    ]


def _cancel_or_replace_stuck(
    *, attempts: Sequence[_InFlight], head: Head, next_nonces: Mapping[int, int], now: datetime
) -> None:
    """
    Cancel calls that expired in the pool, and replace attempts that no block takes by others at higher fees.

    Whatever the nodes say about such bytes, they may have dropped them. `next_nonces` has each relayer's account nonce
    that the next block can take.
    """
    fees = current_fees(head=head)
    for attempt in attempts:
        is_next = attempt.account_nonce == next_nonces.get(attempt.relayer_id)
        with isolated(f"cancelling or replacing {attempt.transaction_hash}"):
            if attempt.status == Attempt.Status.SENT and _cancel_expired(
                attempt=attempt, head=head, fees=fees, now=now
            ):
                continue
            if _is_stuck(attempt, is_next=is_next, head=head, fees=fees, now=now):
                _replace_or_cancel(attempt=attempt, head=head, fees=fees, now=now)


def _cancel_expired(*, attempt: _InFlight, head: Head, fees: Fees, now: datetime) -> bool:
    """Begin to cancel a call that can no longer be executed; return False for any other attempt."""
    if attempt.kind != Attempt.Kind.CALL:
        return False
    valid_until = valid_until_of(int(attempt.validity))
    if attempt.is_superseded:
        reorganisations.cancel_superseded(attempt_id=attempt.id, fees=fees, now=now)
    elif valid_until is not None and valid_until < max(head.timestamp, int(now.timestamp())):
        cancellation.begin(
            attempt=Attempt.objects.get(pk=attempt.id),
            terminal_status=_Status.EXPIRED,
            code="relay-call-expired",
            detail="Its validity ended before it was mined.",
            fees=fees,
            now=now,
        )
    else:
        return False
    return True


def _is_stuck(attempt: _InFlight, *, is_next: bool, head: Head, fees: Fees, now: datetime) -> bool:
    """Return whether an attempt has waited for long, and offers too little or is next in its relayer's line."""
    waited_since = now - timedelta(seconds=get_chain().pace.replace_seconds)
    if is_next and attempt.status in _UNMINED and attempt.waits_since < waited_since:
        return True
    return (
        attempt.status == Attempt.Status.SENT
        and attempt.first_sent_at is not None
        and attempt.first_sent_at < waited_since
        and attempt.max_fee_per_gas_wei < head.base_fee_wei + fees.max_priority_fee_per_gas_wei
    )


def _replace_or_cancel(*, attempt: _InFlight, head: Head, fees: Fees, now: datetime) -> None:
    """
    Replace an attempt at higher fees; if the service can afford no more, cancel its call at its deadline.

    Cheaper gas does not help an attempt that offers the base fee, so it stops its relayer for a shorter time.
    """
    if replacement.replace(attempt_id=attempt.id, fees=fees, now=now):
        return
    offers_base_fee = attempt.max_fee_per_gas_wei >= head.base_fee_wei
    cancellation.begin_if_overdue(
        attempt=Attempt.objects.get(pk=attempt.id),
        fees=fees,
        now=now,
        stops_since=attempt.waits_since if offers_base_fee else None,
    )


def _update_receipts(*, attempts: list[_InFlight], view: ChainView, now: datetime) -> list[_InFlight]:
    """
    Write receipts to attempts whose receipt changed: newly mined, moved by a reorganisation, or removed by one.

    Also replaces a receipt that a node reported wrongly and has since corrected, for the same block.

    A reverted call gets its terminal status before its block is confirmed, so that no follower is accepted behind it.
    Returns all attempts with their new statuses.
    """
    receipts = {attempt.id: view.receipts.get(attempt.transaction_hash) for attempt in attempts}
    changed = {
        attempt.id: attempt._replace(
            status=Attempt.Status.MINED if receipts[attempt.id] else Attempt.Status.SENT
        )
        for attempt in attempts
        if _differs(attempt, receipts[attempt.id])
    }
    if not changed:
        return attempts
    rows = [_with_receipt(attempt, receipts[attempt.id]) for attempt in changed.values()]
    db.all_rows(_Sql.update_receipts, {"receipts": json.dumps(rows), "now": now})
    for attempt in changed.values():
        if receipts[attempt.id] and not attempt.block_hash and attempt.first_sent_at:
            metrics.MINED.observe((now - attempt.first_sent_at).total_seconds())
    return [changed.get(attempt.id, attempt) for attempt in attempts]


def _differs(attempt: _InFlight, receipt: Receipt | None) -> bool:
    """Return whether the stored receipt of the attempt is not this one."""
    if receipt is None:
        return bool(attempt.block_hash)
    stored: tuple[object, ...] = (
        attempt.block_hash,
        attempt.succeeded,
        attempt.gas_used,
        attempt.gas_price_wei,
        attempt.extra_fee_wei,
    )
    return stored != (
        receipt.block_hash,
        receipt.succeeded,
        receipt.gas_used,
        receipt.effective_gas_price_wei,
        receipt.extra_fee_wei or 0,
    )


def _with_receipt(attempt: _InFlight, receipt: Receipt | None) -> dict[str, object]:
    """Return a row of `receipt` in `_Sql.update_receipts`."""
    row = {
        "id": attempt.id,
        "transaction_id": attempt.relay_transaction_id,
        "is_call": attempt.kind == Attempt.Kind.CALL,
        "status": attempt.status,
    }
    if receipt is None:
        return row
    return row | {
        "number": receipt.block_number,
        "hash": receipt.block_hash,
        "succeeded": receipt.succeeded,
        "gas": receipt.gas_used,
        "price": receipt.effective_gas_price_wei,
        "extra": receipt.extra_fee_wei or 0,
    }
