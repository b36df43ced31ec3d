"""
Settlement: what the chain has confirmed becomes credits, once.

The node is asked first; then one transaction locks the rows of many calls, keeps those
that are still in progress, moves their credits and writes their final status, in as many
statements as it takes for one. Where that fails, each call is settled on its own, so that
one which cannot be settled holds back no other.
"""

import logging
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from django.db import transaction

from credits.services import spending
from gateway.chain.errors import NodeUnavailable
from gateway.chain.types import Receipt
from gateway.common import sql
from relay.models import Attempt, RelayTransaction
from relay.services import bulk_statements
from relay.services.endings import LOST, Ending, ending_of
from relay.services.isolation import isolated

logger = logging.getLogger(__name__)

# Their users' accounts are locked together, for some tens of milliseconds; more would save little.
_TOGETHER = 200


class Confirmed(NamedTuple):
    """An attempt and its confirmed receipt."""

    attempt: Attempt
    receipt: Receipt


class _Closing(NamedTuple):
    relay_transaction_id: int
    ending: Ending
    # Of the attempt that carried the call into the chain; without one, the row keeps the hash that was answered.
    landed_hash: str | None


def settle(*, confirmed: Sequence[Confirmed], now: datetime) -> int:
    """
    Settle the relay transactions of these attempts; return how many were not settled before.

    A success and a revert are charged their gas, never more than was held; a
    self-transfer costs the user nothing. What cannot be settled is logged and left
    to the next run.
    """
    return _close_all([closing for one in confirmed if (closing := _closing(one, now))], now)


def settle_lost(*, attempts: Sequence[Attempt], now: datetime) -> int:
    """Settle calls that can never be mined, because transactions unknown to us have used their account nonces."""
    closings = [_Closing(attempt.relay_transaction_id, LOST, None) for attempt in attempts]
    return _close_all(closings, now)


def _closing(confirmed: Confirmed, now: datetime) -> _Closing | None:
    attempt, receipt = confirmed
    found = None
    try:
        with isolated(f"the ending of {attempt.transaction_hash}"):
            ending = ending_of(attempt=attempt, receipt=receipt, now=now)
            landed = receipt.transaction_hash if attempt.kind == Attempt.Kind.CALL else None
            found = _Closing(attempt.relay_transaction_id, ending, landed)
    except NodeUnavailable:
        logger.warning("settlement of %s waits for the node", attempt.transaction_hash)
    return found


def _close_all(closings: Sequence[_Closing], now: datetime) -> int:
    # In the order of rows, so that two workers wait for each other's locks in one order.
    ordered = sorted({closing.relay_transaction_id: closing for closing in closings}.values())
    batches = [ordered[start : start + _TOGETHER] for start in range(0, len(ordered), _TOGETHER)]
    return sum(_close_together(batch, now) for batch in batches)


def _close_together(closings: Sequence[_Closing], now: datetime) -> int:
    if len(closings) > 1:
        with isolated(f"settlement of {len(closings)} calls together"):
            return _close(closings, now)
    # The joint transaction was rolled back; settle them one by one.
    settled = 0
    for closing in closings:
        with isolated(f"settlement of relay transaction {closing.relay_transaction_id}"):
            settled += _close([closing], now)
    return settled


@transaction.atomic(durable=True)
def _close(closings: Sequence[_Closing], now: datetime) -> int:
    due = {closing.relay_transaction_id: closing for closing in closings}
    holds = dict(
        RelayTransaction.objects.select_for_update(no_key=True)
        .in_progress()
        .filter(pk__in=due)
        .order_by("pk")
        .values_list("pk", "hold_id")
    )
    if not holds:
        return 0
    spending.settle_many(
        costs={hold_id: due[row_id].ending.cost for row_id, hold_id in holds.items()}, now=now, capped=True
    )
    _write_endings([due[row_id] for row_id in holds], now)
    return len(holds)


def _write_endings(closings: Sequence[_Closing], now: datetime) -> None:
    endings = [closing.ending for closing in closings]
    params = {
        "ids": [closing.relay_transaction_id for closing in closings],
        "statuses": [ending.status for ending in endings],
        "costs": [ending.cost for ending in endings],
        "codes": [ending.code for ending in endings],
        "details": [ending.detail for ending in endings],
        "hashes": [closing.landed_hash for closing in closings],
        "now": now,
    }
    sql.all_rows(bulk_statements.END_CALLS, params)
