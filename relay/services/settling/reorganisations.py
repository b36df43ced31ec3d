"""
Reverse settlements whose blocks a reorganisation has removed.

The tracker watches a settled call until its block is final: at each new block, it compares the hash that the chain has
at that height with the hash of the block in which the call was settled. If they differ, new entries reverse the
settlement, and the call is in progress again. The tracker then handles it like any other call in progress, so its
outcome depends only on the new chain. The rows hold the range to compare, so a worker that was stopped misses nothing.
"""

import logging
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import NamedTuple

from django.db import transaction

from credits.services import holds
from gateway.chain.client import get_chain_client
from gateway.chain.config import get_chain
from gateway.chain.fees import Fees
from gateway.chain.types import BlockId, ChainView
from gateway.common import db
from gateway.common.statements import Statements
from gateway.common.tasks import isolated
from relay.models import SQL, Attempt, FinalBlock, RelayTransaction, ReversedSettlement
from relay.services.fleet import losses, relayers
from relay.services.sending import cancellation
from rewards.services import cashback
from sponsors.services import first_credits, holding

logger = logging.getLogger(__name__)
_Status = RelayTransaction.Status

# Failure code of a reopened call whose self-transfer was mined after all.
REORGANISED = "reorganised"
# Failure code of a reopened call that was cancelled in favour of a newer call with its relay nonce.
SUPERSEDED = "superseded"
# Failure code of that newer call, if the reopened one was executed instead.


class _Sql(Statements, file=__file__, shared=SQL):
    counts: str
    watch: str
    move_final_block: str
    settled_calls: str


class FinalBlockReplaced(Exception):
    """The chain has another block at the height of the stored final one, so nothing is settled or reversed."""


class Watch(NamedTuple):
    """
    The newest final block, and the blocks above it in which calls were settled.

    `is_replaced` is set if the chain had another block in place of the final one when last compared.
    """

    final: BlockId | None
    is_replaced: bool
    settled: Sequence[BlockId]

    @property
    def heights(self) -> list[int]:
        """The heights whose hashes are to be read, in ascending order."""
        final = [self.final] if self.final else []
        return sorted({block.number for block in [*final, *self.settled]})


def watch() -> Watch:
    """Return the blocks to compare with the chain now."""
    rows = db.all_rows(_Sql.watch, {"chain": get_chain().id})
    if not rows:
        return Watch(None, False, [])
    number, block_hash, is_replaced = rows[0][:3]
    settled = [BlockId(*row[3:]) for row in rows if row[3] is not None]
    return Watch(BlockId(number, block_hash), is_replaced, settled)


def reopen_vanished(*, watch: Watch, view: ChainView, now: datetime) -> int:
    """
    Reopen calls that were settled in blocks that the chain no longer has; return how many.

    A height above the chain's newest block is left out. If no block has vanished, the final
    block moves up.

    Raises:
        FinalBlockReplaced: the final block is not in that chain; nothing changes.
    """
    _require_final_block(watch, view, now)
    vanished = [block for block in watch.settled if _replaced(block, view)]
    if not vanished:
        _move_final_block(watch, view)
        return 0
    logger.warning("a reorganisation removed %s blocks with settled calls", len(vanished))
    params = {
        "chain": get_chain().id,
        "numbers": [block.number for block in vanished],
        "hashes": [block.block_hash for block in vanished],
    }
    reopened = 0
    # Newest first: of several generations of a call, the newest is the one to execute.
    for (row_id,) in db.all_rows(_Sql.settled_calls, params):
        with isolated(f"reopening relay transaction {row_id}"):
            reopened += _reopen(relay_transaction_id=row_id, vanished=vanished, now=now)
    return reopened


def _replaced(block: BlockId, view: ChainView) -> bool:
    return view.block_hashes.get(block.number, block.block_hash) != block.block_hash


def _require_final_block(watch: Watch, view: ChainView, now: datetime) -> None:
    final, rows = watch.final, FinalBlock.objects.filter(chain_id=get_chain().id)
    if final is not None and _replaced(final, view):
        rows.filter(replaced_at=None).update(replaced_at=now)
        raise FinalBlockReplaced(f"block {final.number} was {final.block_hash}")
    if watch.is_replaced and final is not None and final.number in view.block_hashes:
        rows.update(replaced_at=None)


def _move_final_block(watch: Watch, view: ChainView) -> None:
    """Move the stored final block up to the chain's, if everything below that was compared just now."""
    final = view.final
    if final is None or any(
        block.number <= final.number and block.number not in view.block_hashes for block in watch.settled
    ):
        return
    if watch.final is None or final.number > watch.final.number:
        params = {"chain": get_chain().id, "number": final.number, "hash": final.block_hash}
        db.all_rows(_Sql.move_final_block, params)


@transaction.atomic(durable=True)
def _reopen(*, relay_transaction_id: int, vanished: Collection[BlockId], now: datetime) -> bool:
    """Reverse the call's settlement in one of these blocks; return False if another worker has done it."""
    call = RelayTransaction.objects.select_for_update(no_key=True).get(pk=relay_transaction_id)
    carrier = call.attempts.filter(status=Attempt.Status.MINED).first()
    if call.settled_at is None or carrier is None or carrier.block_number is None:
        return False
    block = BlockId(carrier.block_number, carrier.block_hash)
    if block not in vanished:
        return False
    ReversedSettlement.objects.create(
        relay_transaction=call,
        number=call.reversed_settlements.count(),
        status=call.status,
        failure_code=call.failure_code,
        real_cost=call.real_cost,
        transaction_hash=carrier.transaction_hash,
        block_number=block.number,
        block_hash=block.block_hash,
        settled_at=call.settled_at,
        reversed_at=now,
    )
    # This locks the account, so rows of the channel that are read afterwards cannot change.
    shares = holding.shares_of(hold_ids=[call.hold_id])
    of_sponsor = [hold_id for share in shares.values() for hold_id in share.hold_ids]
    reopened = holds.reopen(hold_ids=[call.hold_id, *of_sponsor])
    cashback.reverse(reopened=reopened)
    first_credits.take_back(reopened=reopened)
    holding.recount(hold_ids=shares)
    logger.warning("%s is undone: %s was in block %s", call.status, carrier.transaction_hash, block.number)
    call.terminal_status, call.failure_code, call.failure_detail = _cancellation_of(call, now)
    call.is_superseded = _is_superseded(call)
    call.status, call.settled_at, call.real_cost = _Status.SUBMITTED, None, 0
    call.save(
        update_fields=[
            "status",
            "settled_at",
            "real_cost",
            "terminal_status",
            "failure_code",
            "failure_detail",
            "is_superseded",
        ]
    )
    relayers.bring_back(relayer_id=call.relayer_id)
    losses.reopen(key=call.hold.key)
    return True


def _cancellation_of(call: RelayTransaction, now: datetime) -> tuple[str, str, str]:
    """Return the final status, code and detail that the call gets if its self-transfer is mined."""
    if call.attempts.latest("sequence").kind != Attempt.Kind.CANCELLATION:
        return "", "", ""
    if call.status in {_Status.EXPIRED, _Status.CANCELLED}:
        return call.status, call.failure_code, call.failure_detail
    if call.expires_before(int(now.timestamp())):
        return _Status.EXPIRED, "relay-call-expired", "Its validity ended before it was mined again."
    return (
        _Status.CANCELLED,
        REORGANISED,
        "A reorganisation removed its block, and its self-transfer was mined.",
    )


def _is_superseded(call: RelayTransaction) -> bool:
    same_nonce = RelayTransaction.objects.active().filter(
        chain_id=call.chain_id,
        key_manager_address=call.key_manager_address,
        controller_address=call.controller_address,
        relay_nonce=call.relay_nonce,
        is_superseded=False,
    )
    return same_nonce.exclude(pk=call.pk).exists()


def cancel_superseded(*, attempt_id: int, fees: Fees, now: datetime) -> bool:
    """Begin to cancel a reopened call in favour of the newer one; the chain may still execute either."""
    return cancellation.begin(
        attempt=Attempt.objects.get(pk=attempt_id),
        terminal_status=_Status.CANCELLED,
        code=SUPERSEDED,
        detail="A reorganisation reopened it after a newer call had taken its relay nonce.",
        fees=fees,
        now=now,
    )


def was_overtaken(call: RelayTransaction) -> bool:
    """
    Return whether a reopened call was executed with this call's relay nonce.

    The service then pays for the gas of this call, because the user asked for one execution.
    """
    return Attempt.objects.filter(
        relay_transaction__chain_id=call.chain_id,
        relay_transaction__key_manager_address=call.key_manager_address,
        relay_transaction__controller_address=call.controller_address,
        relay_transaction__relay_nonce=call.relay_nonce,
        relay_transaction__is_superseded=True,
        kind=Attempt.Kind.CALL,
        succeeded=True,
    ).exists()


def accept_chain(*, from_height: int) -> BlockId:
    """
    Compare everything settled above this height with the chain again, final or not; return the block at that height.

    For an operator, after a reorganisation deeper than finality.

    Raises:
        NodeUnavailable: no node responded.
        ValueError: the chain has not reached that height.
    """
    view = get_chain_client().read_chain(
        transaction_hashes=[], accounts=[], confirmations=get_chain().confirmations, heights=[from_height]
    )
    if from_height not in view.block_hashes:
        raise ValueError(f"the chain ends at block {view.head.number}")
    block = BlockId(from_height, view.block_hashes[from_height])
    FinalBlock.objects.update_or_create(
        chain_id=get_chain().id,
        defaults={"number": block.number, "block_hash": block.block_hash, "replaced_at": None},
    )
    return block


class ReorganisationCounts(NamedTuple):
    """Recent effects of reorganisations, and the final block."""

    reversed_settlements: int
    filled_gaps: int
    # 0 until the relay worker has read the chain for the first time.
    final_block: int
    is_replaced: bool


def counts(*, since: datetime) -> ReorganisationCounts:
    """Return the counts since `since`, read in one statement."""
    return ReorganisationCounts(*db.only_row(_Sql.counts, {"chain": get_chain().id, "since": since}))
