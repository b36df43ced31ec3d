"""Noting receipts: what the newest block says of every attempt, in a handful of statements."""

from collections.abc import Sequence
from datetime import datetime

from gateway.chain.states import ChainView, Receipt
from relay.models import Attempt, RelayTransaction

_FACTS = (
    "status",
    "block_number",
    "block_hash",
    "succeeded",
    "gas_used",
    "effective_gas_price_wei",
    "mined_at",
)
_Status = RelayTransaction.Status


def note_receipts(*, attempts: Sequence[Attempt], view: ChainView, now: datetime) -> None:
    """Write receipts to attempts whose block changed: first mined, moved by a reorganisation, or gone again."""
    changed = [attempt for attempt in attempts if _block_of(attempt, view) != attempt.block_hash]
    if not changed:
        return
    for attempt in changed:
        _take(attempt, view.receipts.get(attempt.transaction_hash), now)
    Attempt.objects.bulk_update(changed, _FACTS)
    mined = RelayTransaction.objects.in_progress().filter(
        pk__in=[row.relay_transaction_id for row in changed]
    )
    mined.filter(status=_Status.PENDING).update(status=_Status.SUBMITTED)
    _note_reverts([attempt for attempt in changed if attempt.kind == Attempt.Kind.CALL])


def _note_reverts(calls: Sequence[Attempt]) -> None:
    """Followers must not be accepted behind a call that has reverted, though that is not final yet."""
    reverted = {call.relay_transaction_id for call in calls if call.succeeded is False}
    others = {call.relay_transaction_id for call in calls} - reverted
    in_progress = RelayTransaction.objects.in_progress()
    if reverted:
        in_progress.filter(pk__in=reverted, ends_as="").update(ends_as=_Status.FAILED)
    if others:
        in_progress.filter(pk__in=others, ends_as=_Status.FAILED).update(ends_as="")


def _block_of(attempt: Attempt, view: ChainView) -> str:
    receipt = view.receipts.get(attempt.transaction_hash)
    return receipt.block_hash if receipt else ""


def _take(attempt: Attempt, receipt: Receipt | None, now: datetime) -> None:
    if receipt is None:
        attempt.status, attempt.block_number, attempt.block_hash = Attempt.Status.SENT, None, ""
        attempt.succeeded = attempt.gas_used = attempt.effective_gas_price_wei = attempt.mined_at = None
        return
    attempt.status, attempt.mined_at = Attempt.Status.MINED, now
    attempt.block_number, attempt.block_hash = receipt.block_number, receipt.block_hash
    attempt.succeeded, attempt.gas_used = receipt.succeeded, receipt.gas_used
    attempt.effective_gas_price_wei = receipt.effective_gas_price_wei
