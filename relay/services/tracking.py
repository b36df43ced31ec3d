"""
Every block, read from the chain what became of everything in progress, in few batches.

The tracker may be killed at any point: the next run derives each step from the chain and
the rows again.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from django.conf import settings

from gateway.chain.client import get_chain_client
from gateway.chain.config import get_chain
from gateway.chain.fees import Fees
from gateway.chain.types import ChainView, Head, Receipt
from gateway.common import db
from gateway.common.db import isolated
from relay.models import Attempt, Relayer, RelayTransaction
from relay.services import cancellation, relayers, replacement, settlement
from relay.services.replacement import fees_today

_Status = RelayTransaction.Status

# A used account nonce without a receipt counts as lost this many blocks beyond the confirmations.
_LOST_DEPTH = 20


def track(*, now: datetime) -> int:
    """
    Bring rows up to what the chain says; return how many relay transactions were settled.

    Raises:
        NodeUnavailable: no node answered; nothing is lost, the next run repeats.
    """
    settled, _ = _track(now=now)
    return settled


class Tracker:
    """Tracks once per block, for one that is asked more often than blocks come."""

    def __init__(self) -> None:
        self._newest: Head | None = None

    def track_new_block(self, *, now: datetime) -> int:
        """
        Track if there is a block that was not tracked yet; return how many relay transactions were settled.

        Raises:
            NodeUnavailable: no node answered; the next call tries again.
        """
        if get_chain_client().head() == self._newest:
            return 0
        settled, self._newest = _track(now=now)
        return settled


def _track(*, now: datetime) -> tuple[int, Head]:
    """Return how many were settled, and the newest block that this saw."""
    relayers.register_new_relayers(now=now)
    attempts = list(
        Attempt.objects.in_progress()
        .filter(chain_id=get_chain().id)
        .select_related("relay_transaction")
        .in_nonce_order()
        .without_bytes()
    )
    accounts = list(Relayer.objects.filter(chain_id=get_chain().id))
    view = get_chain_client().read_chain(
        transaction_hashes=[attempt.transaction_hash for attempt in attempts],
        accounts=[relayer.address for relayer in accounts],
        confirmations=get_chain().confirmations,
    )
    relayers.update_accounts(relayers=accounts, accounts=view.accounts, now=now)
    _update_receipts(attempts=attempts, view=view, now=now)
    settled = settlement.settle(confirmed=_confirmed(attempts, view), now=now)
    unmined = _unmined(attempts, view)
    settled += _settle_lost(attempts=unmined, relayers=accounts, view=view, now=now)
    _cancel_or_replace_stuck(attempts=unmined, view=view, now=now)
    return settled, view.head


def _confirmed(attempts: Sequence[Attempt], view: ChainView) -> list[settlement.Confirmed]:
    """Keep the attempts whose block is confirmed, with their receipts."""
    deepest = view.head.number - get_chain().confirmations + 1
    return [
        settlement.Confirmed(attempt, receipt)
        for attempt in attempts
        if (receipt := view.receipts.get(attempt.transaction_hash)) and receipt.block_number <= deepest
    ]


def _unmined(attempts: Sequence[Attempt], view: ChainView) -> list[Attempt]:
    """Keep attempts on account nonces that no transaction of ours has used; the chain takes one of several."""
    used = {
        (attempt.relayer_id, attempt.account_nonce)
        for attempt in attempts
        if attempt.transaction_hash in view.receipts
    }
    return [attempt for attempt in attempts if (attempt.relayer_id, attempt.account_nonce) not in used]


def _settle_lost(
    *, attempts: Sequence[Attempt], relayers: Sequence[Relayer], view: ChainView, now: datetime
) -> int:
    """Settle calls whose account nonce is used deep in the chain, though none of their attempts has a receipt."""
    addresses = {relayer.pk: relayer.address for relayer in relayers}
    lost = _passed_over(attempts, addresses, view)
    if not lost:
        return 0
    # The chain is read once more: the first answers may have come from both sides of a new block, or a worker
    # may have replaced an attempt after the rows were read.
    # A node behind a balancer may lag and know no receipt yet, so only what lies much deeper counts as lost.
    candidates = Attempt.objects.filter(
        relay_transaction__in={attempt.relay_transaction_id for attempt in lost}
    )
    owners = dict(candidates.values_list("transaction_hash", "relay_transaction_id"))
    again = get_chain_client().read_chain(
        transaction_hashes=list(owners),
        accounts=sorted({addresses[attempt.relayer_id] for attempt in lost}),
        confirmations=get_chain().confirmations + _LOST_DEPTH,
    )
    if again.head.number < view.head.number:
        return 0
    mined = {owners[transaction_hash] for transaction_hash in again.receipts}
    confirmed_lost = [
        attempt
        for attempt in _passed_over(lost, addresses, again)
        if attempt.relay_transaction_id not in mined
    ]
    return settlement.settle_lost(attempts=confirmed_lost, now=now)


def _passed_over(attempts: Sequence[Attempt], addresses: Mapping[int, str], view: ChainView) -> list[Attempt]:
    """Keep attempts whose account nonce is below the confirmed one of their relayer."""
    return [
        attempt
        for attempt in attempts
        if attempt.account_nonce < view.accounts[addresses[attempt.relayer_id]].confirmed_nonce
    ]


def _cancel_or_replace_stuck(*, attempts: Sequence[Attempt], view: ChainView, now: datetime) -> None:
    """Bump the fees of what was sent long ago and pays no full tip now; cancel calls that expired in the pool."""
    fees = fees_today(head=view.head)
    for attempt in attempts:
        if attempt.status != Attempt.Status.SENT:
            continue
        with isolated(f"cancelling or replacing {attempt.transaction_hash}"):
            _cancel_or_replace(attempt=attempt, head=view.head, fees=fees, now=now)


def _cancel_or_replace(*, attempt: Attempt, head: Head, fees: Fees, now: datetime) -> None:
    newest_time = max(head.timestamp, int(now.timestamp()))
    if attempt.kind == Attempt.Kind.CALL and attempt.relay_transaction.expires_before(newest_time):
        cancellation.begin(
            attempt=attempt,
            terminal_status=_Status.EXPIRED,
            code="relay-call-expired",
            detail="Its validity ended before it was mined.",
            fees=fees,
            now=now,
        )
    elif (
        attempt.first_sent_at is not None
        and attempt.first_sent_at < now - timedelta(seconds=settings.RELAY_REPLACE_SECONDS)
        and attempt.max_fee_per_gas_wei < head.base_fee_wei + fees.max_priority_fee_per_gas_wei
    ):
        replacement.replace(attempt_id=attempt.pk, fees=fees, now=now)


def _update_receipts(*, attempts: Sequence[Attempt], view: ChainView, now: datetime) -> None:
    """Write receipts to attempts whose block changed: first mined, moved by a reorganisation, or gone again."""
    changed = [attempt for attempt in attempts if _block_of(attempt, view) != attempt.block_hash]
    if not changed:
        return
    _write([(attempt, view.receipts.get(attempt.transaction_hash)) for attempt in changed], now)
    RelayTransaction.objects.filter(
        pk__in=[attempt.relay_transaction_id for attempt in changed], status=_Status.PENDING
    ).update(status=_Status.SUBMITTED)
    _mark_reverts([attempt for attempt in changed if attempt.kind == Attempt.Kind.CALL], view)


def _mark_reverts(calls: Sequence[Attempt], view: ChainView) -> None:
    """Set the terminal status of reverted calls: no follower is accepted behind one, though it is not final yet."""
    receipts = [(call.relay_transaction_id, view.receipts.get(call.transaction_hash)) for call in calls]
    reverted = {call_id for call_id, receipt in receipts if receipt and not receipt.succeeded}
    others = {call.relay_transaction_id for call in calls} - reverted
    in_progress = RelayTransaction.objects.in_progress()
    if reverted:
        in_progress.filter(pk__in=reverted, terminal_status="").update(terminal_status=_Status.FAILED)
    if others:
        in_progress.filter(pk__in=others, terminal_status=_Status.FAILED).update(terminal_status="")


def _block_of(attempt: Attempt, view: ChainView) -> str:
    receipt = view.receipts.get(attempt.transaction_hash)
    return receipt.block_hash if receipt else ""


def _write(mined: Sequence[tuple[Attempt, Receipt | None]], now: datetime) -> None:
    receipts = [receipt for _, receipt in mined]
    for attempt, receipt in mined:
        attempt.status = Attempt.Status.MINED if receipt else Attempt.Status.SENT
    params = {
        "ids": [attempt.pk for attempt, _ in mined],
        "statuses": [attempt.status for attempt, _ in mined],
        "numbers": [receipt and receipt.block_number for receipt in receipts],
        "hashes": [receipt.block_hash if receipt else "" for receipt in receipts],
        "successes": [receipt and receipt.succeeded for receipt in receipts],
        "gas": [receipt and receipt.gas_used for receipt in receipts],
        "prices": [receipt and receipt.effective_gas_price_wei for receipt in receipts],
        "times": [now if receipt else None for receipt in receipts],
    }
    db.all_rows(_UPDATE_RECEIPTS, params)


# What the newest block says of attempts: null for one that is in no block any more.
_UPDATE_RECEIPTS = """
UPDATE relay_attempt AS attempt
SET status = receipt.status, block_number = receipt.number, block_hash = receipt.hash,
    succeeded = receipt.succeeded, gas_used = receipt.gas, effective_gas_price_wei = receipt.price,
    mined_at = receipt.at
FROM unnest(
    %(ids)s::bigint[], %(statuses)s::text[], %(numbers)s::bigint[], %(hashes)s::text[],
    %(successes)s::boolean[], %(gas)s::bigint[], %(prices)s::numeric[], %(times)s::timestamptz[]
) AS receipt (id, status, number, hash, succeeded, gas, price, at)
WHERE attempt.id = receipt.id
RETURNING attempt.id
"""
