"""Noting receipts: what the newest block says of every attempt, in a handful of statements."""

from collections.abc import Sequence
from datetime import datetime

from gateway.chain.types import ChainView, Receipt
from gateway.common import sql
from relay.models import Attempt, RelayTransaction
from relay.services import bulk_statements

_Status = RelayTransaction.Status


def note_receipts(*, attempts: Sequence[Attempt], view: ChainView, now: datetime) -> None:
    """Write receipts to attempts whose block changed: first mined, moved by a reorganisation, or gone again."""
    changed = [attempt for attempt in attempts if _block_of(attempt, view) != attempt.block_hash]
    if not changed:
        return
    _write([(attempt, view.receipts.get(attempt.transaction_hash)) for attempt in changed], now)
    mined = RelayTransaction.objects.in_progress().filter(
        pk__in=[row.relay_transaction_id for row in changed]
    )
    mined.filter(status=_Status.PENDING).update(status=_Status.SUBMITTED)
    _note_reverts([attempt for attempt in changed if attempt.kind == Attempt.Kind.CALL], view)


def _note_reverts(calls: Sequence[Attempt], view: ChainView) -> None:
    """Followers must not be accepted behind a call that has reverted, though that is not final yet."""
    receipts = [(call.relay_transaction_id, view.receipts.get(call.transaction_hash)) for call in calls]
    reverted = {call_id for call_id, receipt in receipts if receipt and not receipt.succeeded}
    others = {call.relay_transaction_id for call in calls} - reverted
    in_progress = RelayTransaction.objects.in_progress()
    if reverted:
        in_progress.filter(pk__in=reverted, ends_as="").update(ends_as=_Status.FAILED)
    if others:
        in_progress.filter(pk__in=others, ends_as=_Status.FAILED).update(ends_as="")


def _block_of(attempt: Attempt, view: ChainView) -> str:
    receipt = view.receipts.get(attempt.transaction_hash)
    return receipt.block_hash if receipt else ""


def _write(found: Sequence[tuple[Attempt, Receipt | None]], now: datetime) -> None:
    receipts = [receipt for _, receipt in found]
    for attempt, receipt in found:
        attempt.status = Attempt.Status.MINED if receipt else Attempt.Status.SENT
    params = {
        "ids": [attempt.pk for attempt, _ in found],
        "statuses": [attempt.status for attempt, _ in found],
        "numbers": [receipt and receipt.block_number for receipt in receipts],
        "hashes": [receipt.block_hash if receipt else "" for receipt in receipts],
        "successes": [receipt and receipt.succeeded for receipt in receipts],
        "gas": [receipt and receipt.gas_used for receipt in receipts],
        "prices": [receipt and receipt.effective_gas_price_wei for receipt in receipts],
        "times": [now if receipt else None for receipt in receipts],
    }
    sql.all_rows(bulk_statements.NOTE_RECEIPTS, params)
