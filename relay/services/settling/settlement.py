"""
Settle calls that the chain has confirmed: capture or release their credits, once.

The outcome of each call follows from its receipt; for a revert, a node is asked for the
reason. Then one transaction locks the rows of many calls, keeps those that are still in
progress, captures or releases their holds and writes their final status, in a constant
number of statements. If it fails, each call is settled in its own transaction, so that
one failing call does not delay the others.
"""

import json
import logging
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from django.conf import settings
from django.db import OperationalError, transaction

from credits.services import holds
from gateway.chain.client import get_chain_client
from gateway.chain.config import get_chain
from gateway.chain.contracts import decode_execute_relay_call, refusal_from_revert
from gateway.chain.errors import CallReverted, NodeUnavailable, ResultTooLarge
from gateway.chain.types import ExternalExecution, Receipt
from gateway.common import db, metrics
from gateway.common.statements import Statements
from gateway.common.tasks import isolated
from gateway.web import tracing
from relay.errors import KeyManagerNotOwner
from relay.models import COPY_TAKEN, DEPLOYED_FIRST, OVERTAKEN, SQL, Attempt, Loss, RelayTransaction
from relay.pricing import credits_of
from relay.services import removing
from relay.services.fleet import losses
from relay.services.settling import reorganisations, traces
from rewards.services import cashback
from signer import removals
from sponsors.services import first_credits, holding

logger = logging.getLogger(__name__)
_Status = RelayTransaction.Status


# The settlement of a revert waits at most this many blocks for a node that can explain it.
_EXPLAINED_WITHIN_BLOCKS = 50
# How far back to look for another execution of a call: half an hour on mainnet, longer than an attempt waits.
_LOOK_BACK_BLOCKS = 150
# Calls settled in one transaction. Requests wait for its locks, and larger batches hardly lower the time per call.
_BATCH_SIZE = 50
# How long one transaction waits for each lock. Requests wait for the locks that it already holds, so this is shorter
# than their own lock timeout.
_LOCK_MILLISECONDS = 100
# Lock timeouts and deadlocks.
_LOCKED = (OperationalError,)
# Calls that earlier runs could not settle, in the order of their retries. Each run settles them last, one by one, so
# that the other calls do not wait for the same locks every time.
_locked_before: dict[int, None] = {}
# After this many failed retries a run stops retrying, because each failure costs a lock timeout.
_MOST_FAILURES = 5


class _Sql(Statements, file=__file__, shared=SQL):
    settle_calls: str


class Outcome(NamedTuple):
    """The final status of a relay transaction, its cost in credits, and why it failed."""

    status: RelayTransaction.Status
    cost: int
    code: str = ""
    detail: str = ""


_LOST = Outcome(_Status.CANCELLED, 0, "account-nonce-lost", "Another transaction used the account nonce.")


class Confirmed(NamedTuple):
    """An attempt and its confirmed receipt."""

    attempt_id: int
    relay_transaction_id: int
    kind: str
    # The wei of a credit for this call.
    credit_wei: int
    receipt: Receipt


class _Settlement(NamedTuple):
    relay_transaction_id: int
    outcome: Outcome
    # The hash of the attempt that executed the call; None keeps the hash that the caller was given.
    mined_hash: str | None


class _Settled(NamedTuple):
    """A call that this run settled; `seconds` is the time since its acceptance."""

    hold_id: int
    user_id: int
    cost: int
    status: str
    sponsor_hold_id: int | None
    share_percent: int
    seconds: float
    # The hold of a new profile's first credits, in how many days they expire, on which chains besides home they may be
    # spent, and how many are due now.
    first_hold_id: int | None
    first_days: int
    first_chain_ids: list[int]
    first_credits: int


def _outcome_of_failure(confirmed: Confirmed, cost: int, now: datetime) -> Outcome:
    """
    Return the outcome of the call whose attempt is a revert, which costs its gas, or a self-transfer, which is free.

    A revert that no node explains within a number of blocks is settled as failed: untrusted code of a key manager can
    emit more logs than nodes return, and its hold would never close.

    Raises:
        NodeUnavailable: a revert could not be explained yet; retry.
    """
    receipt = confirmed.receipt
    attempt = Attempt.objects.select_related("relay_transaction__relayer", "relay_transaction__hold").get(
        pk=confirmed.attempt_id
    )
    transaction = attempt.relay_transaction
    if attempt.kind == Attempt.Kind.CANCELLATION:
        status = _Status(transaction.terminal_status)
        return Outcome(status, 0, transaction.failure_code, transaction.failure_detail)
    try:
        if transaction.deploys_profile:
            return _outcome_of_deployment(transaction, receipt, cost, now)
        return _outcome_of_revert(transaction=transaction, receipt=receipt, cost=cost)
    except NodeUnavailable:
        timeout = timedelta(seconds=_EXPLAINED_WITHIN_BLOCKS * get_chain().block_seconds)
        if attempt.mined_at is None or attempt.mined_at > now - timeout:
            raise
        logger.warning("no node explains the revert of %s; it is settled as failed", receipt.transaction_hash)
        return Outcome(_Status.FAILED, cost, "reverted", "The call reverted without a reason.")


def _outcome_of_deployment(
    transaction: RelayTransaction, receipt: Receipt, cost: int, now: datetime
) -> Outcome:
    """
    Return the outcome of a deployment that reverted.

    If somebody else deployed exactly this profile first, the payer has what it asked for, unless controllers were to
    be removed from it. The service bears the gas, within a part of its loss budget, because the payer could not prevent
    it.
    """
    profile = get_chain_client().read_profile(
        profile=transaction.profile_address,
        controller=transaction.profile_address,
        digest=bytes(32),
        signature=b"",
    )
    if not profile.profile_code:
        return Outcome(_Status.FAILED, cost, "deployment-reverted", "The factory reverted the deployment.")
    detail = "Somebody else deployed exactly this profile first."
    with_removal = removals.decode(bytes(transaction.payload))
    is_taken = with_removal and not removing.holds(transaction.profile_address, with_removal.removal)
    is_borne = _bear(transaction, receipt.cost_wei, now)
    if is_taken:
        detail += (
            " Controllers that the home chain has removed act there: send their removal as a relay call."
        )
        if is_borne:
            return Outcome(_Status.FAILED, 0, COPY_TAKEN, detail)
        return Outcome(_Status.FAILED, cost, "copy-taken-charged", detail)
    if is_borne:
        return Outcome(_Status.EXECUTED_EXTERNALLY, 0, DEPLOYED_FIRST, detail)
    return Outcome(_Status.EXECUTED_EXTERNALLY, cost, "executed-externally", detail)


@transaction.atomic(durable=True)
def _bear(call: RelayTransaction, cost_wei: int, now: datetime) -> bool:
    """Have the service bear the cost of an overtaken deployment; return False if its budget for that is used up."""
    return losses.reserve(
        key=call.hold.key,
        user_id=call.user_id,
        amount_wei=cost_wei,
        kind=Loss.Kind.OVERTAKEN,
        now=now,
    )


def _outcome_of_revert(*, transaction: RelayTransaction, receipt: Receipt, cost: int) -> Outcome:
    """Return the outcome of a revert: executed by another sender first, or failed, with the reason."""
    client = get_chain_client()
    next_nonce = client.read_relay_nonce(
        key_manager=transaction.key_manager_address,
        controller=transaction.controller_address,
        channel=transaction.channel,
    )
    # If the key manager no longer returns a nonce, there is no way to find another execution.
    if next_nonce is not None and next_nonce > transaction.relay_nonce:
        if reorganisations.was_overtaken(transaction):
            return Outcome(_Status.FAILED, 0, OVERTAKEN, "A reorganisation let an earlier call in.")
        executions = client.read_external_executions(
            key_manager=transaction.key_manager_address,
            controller=transaction.controller_address,
            from_block=max(0, receipt.block_number - _LOOK_BACK_BLOCKS),
            to_block=receipt.block_number,
        )
        if any(_is_same_call(transaction, execution) for execution in executions):
            return Outcome(
                _Status.EXECUTED_EXTERNALLY, cost, "executed-externally", "Another sender executed it first."
            )
        return Outcome(_Status.FAILED, cost, "relay-nonce-used", "Another call used the nonce first.")
    return Outcome(_Status.FAILED, cost, *_reason_of(transaction))


def _is_same_call(transaction: RelayTransaction, execution: ExternalExecution) -> bool:
    """Return whether another sender's transaction is this call; if it came through a contract, compare the parts."""
    payload = bytes(transaction.payload)
    if execution.selector != payload[:4] or _is_ours(execution):
        return False
    decoded = decode_execute_relay_call(execution.calldata)
    if decoded is None:
        parts = (transaction.relay_nonce.to_bytes(32, "big"), payload)
        return all(part in execution.calldata for part in parts)
    return decoded[1:] == (transaction.relay_nonce, transaction.validity, payload)


def _is_ours(execution: ExternalExecution) -> bool:
    return Attempt.objects.with_hash(execution.transaction_hash).exists()


def _reason_of(transaction: RelayTransaction) -> tuple[str, str]:
    """Simulate the call now; return the code and detail of its error, or of the fact that it would succeed."""
    try:
        get_chain_client().simulate_relay_call(
            sender=transaction.relayer.address,
            key_manager=transaction.key_manager_address,
            calldata=transaction.calldata,
            gas_cap=settings.RELAY_MAX_GAS,
        )
    except ResultTooLarge as too_large:
        return too_large.code, too_large.detail
    except CallReverted as reverted:
        owner = _owner_of(transaction)
        if owner != transaction.key_manager_address:
            detail = f"The profile was moved: it is owned by {owner} now, not by the call's key manager."
            return KeyManagerNotOwner.code, detail
        refusal = refusal_from_revert(reverted.data)
        return refusal.code, refusal.detail
    return "reverted", "The call reverted in its block; the same call would pass now."


def _owner_of(transaction: RelayTransaction) -> str | None:
    profile, controller = transaction.profile_address, transaction.controller_address
    return (
        get_chain_client()
        .read_profile(profile=profile, controller=controller, digest=bytes(32), signature=b"")
        .owner
    )


def settle(*, confirmed: Sequence[Confirmed], now: datetime) -> int:
    """
    Settle the relay transactions of these attempts; return how many were not settled before.

    A success and a revert are charged their gas, never more than was held; a
    self-transfer costs the user nothing. A call that cannot be settled is logged and
    left to the next run.
    """
    settlements = [_settlement_of(one, now) for one in confirmed]
    return _settle_all([settlement for settlement in settlements if settlement is not None], now)


def settle_lost(*, relay_transaction_ids: Iterable[int], now: datetime) -> int:
    """Settle calls that can never be mined because unknown transactions used their account nonces."""
    return _settle_all([_Settlement(row_id, _LOST, None) for row_id in relay_transaction_ids], now)


def _settlement_of(confirmed: Confirmed, now: datetime) -> _Settlement | None:
    """Return the settlement of a call, or None if the reason of its failure cannot be read now."""
    row_id, receipt = confirmed.relay_transaction_id, confirmed.receipt
    is_call = confirmed.kind == Attempt.Kind.CALL
    mined_hash = receipt.transaction_hash if is_call else None
    cost = credits_of(receipt.cost_wei, credit_wei=confirmed.credit_wei)
    if is_call and receipt.succeeded:
        return _Settlement(row_id, Outcome(_Status.SUCCESS, cost), mined_hash)
    settlement = None
    try:
        with isolated(f"the outcome of {receipt.transaction_hash}"):
            settlement = _Settlement(row_id, _outcome_of_failure(confirmed, cost, now), mined_hash)
    except NodeUnavailable:
        logger.warning("settlement of %s waits for the node", receipt.transaction_hash)
    return settlement


def _settle_all(settlements: Sequence[_Settlement], now: datetime) -> int:
    each_once = {settlement.relay_transaction_id: settlement for settlement in settlements}
    for row_id in set(_locked_before) - each_once.keys():
        del _locked_before[row_id]
    alone = [each_once.pop(row_id) for row_id in _locked_before]
    joint = list(each_once.values())
    batches = [joint[start : start + _BATCH_SIZE] for start in range(0, len(joint), _BATCH_SIZE)]
    settled = sum(_settle_batch(batch, now) for batch in batches)
    return settled + _settle_one_by_one(alone, now, most_failures=_MOST_FAILURES)


def _settle_batch(settlements: Sequence[_Settlement], now: datetime) -> int:
    if len(settlements) > 1:
        with isolated(f"settlement of {len(settlements)} calls together", expected=_LOCKED):
            return _settle(settlements, now)
    # The transaction of the batch was rolled back, so none of its calls is settled.
    return _settle_one_by_one(settlements, now)


def _settle_one_by_one(
    settlements: Sequence[_Settlement], now: datetime, *, most_failures: int | None = None
) -> int:
    """Settle each in its own transaction; after `most_failures` failures, leave the rest to the next run."""
    settled = failures = 0
    for settlement in settlements:
        if failures == most_failures:
            break
        row_id = settlement.relay_transaction_id
        with isolated(f"settlement of call {row_id}", expected=_LOCKED) as item:
            settled += _settle([settlement], now)
        _locked_before.pop(row_id, None)
        if not item.succeeded:
            # Moved to the end, so that the next run begins with other calls.
            _locked_before[row_id] = None
            failures += 1
    return settled


@transaction.atomic(durable=True)
def _settle(settlements: Sequence[_Settlement], now: datetime) -> int:
    outcomes = [
        {"id": settlement.relay_transaction_id, "hash": settlement.mined_hash, **settlement.outcome._asdict()}
        for settlement in settlements
    ]
    db.limit_lock_waits(_LOCK_MILLISECONDS)
    settled = [
        _Settled._make(row)
        for row in db.all_rows(_Sql.settle_calls, {"outcomes": json.dumps(outcomes), "now": now})
    ]
    if settled:
        _settle_credits(settled, now)
        if get_chain().has_extra_fees:
            # Only these rise unbounded after a call is signed.
            losses.note_excess(hold_ids=[call.hold_id for call in settled], now=now)
    for call in settled:
        metrics.SETTLED.observe(call.seconds)
    if settled and tracing.is_on():
        hold_ids = [call.hold_id for call in settled]
        transaction.on_commit(lambda: traces.send_settled(hold_ids), robust=True)
    return len(settled)


def _settle_credits(settled: Sequence[_Settled], now: datetime) -> None:
    """
    Close the holds of these calls, reward those that succeeded, and give new profiles their first credits.

    Comes last: requests wait for the accounts.
    """
    costs = {call.hold_id: call.cost for call in settled}
    shares = {
        call.hold_id: holding.Share(call.sponsor_hold_id, call.share_percent)
        for call in settled
        if call.sponsor_hold_id is not None
    }
    firsts = {call.first_hold_id: call for call in settled if call.first_hold_id is not None}
    gifts = {hold_id: call.first_credits for hold_id, call in firsts.items()}
    closed = holds.close(costs=holding.divided(costs, shares) | gifts)
    succeeded = {call.hold_id for call in settled if call.status == _Status.SUCCESS}
    cashback.reward(closed=[hold for hold in closed if hold.hold_id in succeeded], now=now)
    due = {
        hold_id: first_credits.Due(call.user_id, call.first_credits, call.first_days, call.first_chain_ids)
        for hold_id, call in firsts.items()
        if call.first_credits
    }
    first_credits.give(closed=closed, due=due, now=now)
    holding.recount(hold_ids=shares)
