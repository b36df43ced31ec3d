"""
Endings: what a receipt means for the call it was asked for, and why a call failed.

Only a revert needs the node for that. Nothing here changes a row.

Settlement: what the chain has confirmed becomes credits, once.

The node is asked first; then one transaction locks the rows of many calls, keeps those
that are still in progress, moves their credits and writes their final status, in as many
statements as it takes for one. Where that fails, each call is settled on its own, so that
one which cannot be settled holds back no other.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from django.conf import settings
from django.db import transaction

from gateway.chain.client import get_chain_client
from gateway.chain.config import get_chain
from gateway.chain.contracts import decode_execute_relay_call, refusal_from_revert
from gateway.chain.errors import CallReverted, NodeUnavailable
from gateway.chain.types import ExternalExecution, Receipt
from gateway.common import db
from relay.models import Attempt, RelayTransaction
from relay.pricing import cost_in_credits
from relay.services import statements
from relay.services.isolation import isolated
from rewards.services import cashback

logger = logging.getLogger(__name__)
_Status = RelayTransaction.Status


@dataclass(frozen=True, slots=True)
class Ending:
    """How a relay transaction ends, and what its gas cost in credits."""

    status: RelayTransaction.Status
    cost: int
    code: str = ""
    detail: str = ""


LOST = Ending(_Status.CANCELLED, 0, "account-nonce-lost", "Another transaction used the account nonce.")


# How many blocks a revert waits for a node that can explain it.
_EXPLAINED_WITHIN_BLOCKS = 50


def ending_of(*, attempt: Attempt, receipt: Receipt, now: datetime) -> Ending:
    """
    Return how the call whose `attempt` the chain has confirmed with `receipt` ends.

    A success and a revert cost their gas; a self-transfer costs the user nothing. A
    revert that no node explains ends as failed after a while: a key manager of unvetted
    code can emit more logs than nodes return, and would keep its hold open for ever.

    Raises:
        NodeUnavailable: a revert could not be explained yet; try again.
    """
    row = attempt.relay_transaction
    if attempt.kind == Attempt.Kind.CANCELLATION:
        return Ending(_Status(row.ends_as), 0, row.end_code, row.end_detail)
    cost = cost_in_credits(
        gas=receipt.gas_used, price_wei=receipt.effective_gas_price_wei, credit_wei=settings.CREDIT_WEI
    )
    if receipt.succeeded:
        return Ending(_Status.SUCCESS, cost)
    try:
        return _ending_of_revert(row=row, receipt=receipt, cost=cost)
    except NodeUnavailable:
        patience = timedelta(seconds=_EXPLAINED_WITHIN_BLOCKS * get_chain().block_seconds)
        if attempt.mined_at is None or attempt.mined_at > now - patience:
            raise
        logger.warning("nobody explains the revert of %s; it is settled as failed", receipt.transaction_hash)
        return Ending(_Status.FAILED, cost, "reverted", "The call reverted, and the chain did not say why.")


def _ending_of_revert(*, row: RelayTransaction, receipt: Receipt, cost: int) -> Ending:
    """Distinguish a call that somebody else executed first from one that failed by itself; return why it failed."""
    client = get_chain_client()
    next_nonce = client.read_relay_nonce(
        key_manager=row.key_manager_address, controller=row.controller_address, channel=row.channel
    )
    # A key manager that no longer returns a nonce has executed nothing that we could find.
    if next_nonce is not None and next_nonce > row.relay_nonce:
        executions = client.read_external_executions(
            key_manager=row.key_manager_address,
            controller=row.controller_address,
            from_block=max(0, receipt.block_number - _LOOK_BACK_BLOCKS),
            to_block=receipt.block_number,
        )
        if any(_is_same_call(row, execution) for execution in executions):
            return Ending(
                _Status.EXECUTED_EXTERNALLY, cost, "executed-externally", "Somebody else executed it first."
            )
        return Ending(_Status.FAILED, cost, "relay-nonce-used", "Another call used the nonce first.")
    return Ending(_Status.FAILED, cost, *_reason_of(row))


# About half an hour on mainnet: longer than an attempt waits for its block.
_LOOK_BACK_BLOCKS = 150


def _is_same_call(row: RelayTransaction, execution: ExternalExecution) -> bool:
    """Return whether that execution is this call; inside another contract's call, its parts appear unchanged."""
    if execution.selector != bytes(row.payload)[:4] or _is_ours(execution):
        return False
    decoded = decode_execute_relay_call(execution.calldata)
    if decoded is None:
        parts = (row.relay_nonce.to_bytes(32, "big"), bytes(row.payload))
        return all(part in execution.calldata for part in parts)
    _, relay_nonce, validity, payload = decoded
    return (relay_nonce, validity, payload) == (row.relay_nonce, row.validity, bytes(row.payload))


def _is_ours(execution: ExternalExecution) -> bool:
    return Attempt.objects.filter(transaction_hash=execution.transaction_hash.lower()).exists()


def _reason_of(row: RelayTransaction) -> tuple[str, str]:
    """Ask the chain why the call reverts now. It may have recovered since, which is also an answer."""
    try:
        get_chain_client().simulate_relay_call(
            sender=row.relayer.address,
            key_manager=row.key_manager_address,
            calldata=row.calldata,
            gas_cap=settings.RELAY_MAX_GAS,
        )
    except CallReverted as reverted:
        refusal = refusal_from_revert(reverted.data)
        return refusal.code, refusal.detail
    return "reverted", "The call reverted in its block; the same call would pass now."


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
    cashback.settle_many(
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
    db.all_rows(statements.END_CALLS, params)
