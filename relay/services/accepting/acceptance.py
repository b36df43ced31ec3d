"""
Accepts calls that the chain would execute now, in one transaction: takes their slots, signs them and stores them.

Inside the transaction nothing leaves the process: hold, account nonce, signed bytes and rows commit together or not at
all, so a returned hash will be broadcast. With a remote signer, calls are stored unsigned first
(`relay.services.accepting.unsigned`), and signed and inserted in a second transaction.

A batch waits only briefly for a locked row, since all its calls wait with it; then its calls are accepted one by one.
"""

import logging
from collections.abc import Sequence, Set
from typing import Any

from django.db import IntegrityError, OperationalError, transaction

from gateway.chain.config import get_chain
from gateway.chain.signing import Signer, get_signer
from gateway.common import db
from relay.services.accepting import contention, unsigned
from relay.services.accepting.calls import Slot, SubmittedCall, signed_columns
from relay.services.accepting.contention import BATCH_MILLISECONDS, Line, Lines, locked
from relay.services.accepting.statements import insert_calls, policy_of, take_slots
from signer.transactions import UnsignedTransaction

logger = logging.getLogger(__name__)
_lines = Lines()
# The constraints that reserve a relay nonce: for an active call, and for a call that waits for its signature.
_NONCE_CONFLICTS = {
    "relaytransaction_active_nonce": "nonce-taken",
    "unsignedcall_relay_nonce": "nonce-unsigned",
}


def accept_together(calls: Sequence[SubmittedCall]) -> Set[SubmittedCall]:
    """
    Accept calls in one transaction; return those with an outcome: `slot`, or a `ticket` if the call must wait alone.

    Of the calls of one channel, only the first is accepted; the checks of the next pass see it. If a lock is not free
    within the lock timeout, no call is accepted, and each gets a ticket.

    Raises:
        IntegrityError: one of several calls failed; the `Batcher` then runs a pass for each call.
        SignerUnavailable: the remote signer does not respond.
    """
    first_of_channel = {call.channel: call for call in reversed(calls)}.values()
    first = [call for call in calls if call in first_of_channel]
    joint = [call for call in first if not any(_lines.has(line) for line in _lines_of(call))]
    stuck = [call for call in first if call not in joint]
    if joint:
        try:
            accept(joint, lock_timeout=f"{BATCH_MILLISECONDS}ms")
        except OperationalError as error:
            if not db.is_lock_timeout(error):
                raise
            logger.warning(
                "a lock is held by another transaction; %s calls are accepted one by one", len(joint)
            )
            stuck = first
    for call in stuck:
        # A follower joins its user's line if there is one: the checks of the follower may depend on a call in it.
        line = next(filter(_lines.has, _lines_of(call)), _lines_of(call)[-1])
        call.ticket = _lines.join(line)
    return set(first)


def accept_in_line(call: SubmittedCall) -> None:
    """
    Accept a call with a ticket when the earlier calls of its line have ended.

    Raises:
        ServiceUnavailable: another transaction keeps the lock for too long; nothing is stored.
        SignerUnavailable: the remote signer does not respond.
    """
    ticket, call.ticket = call.ticket, None
    assert ticket is not None  # noqa: S101 - for the type checker
    with _lines.turn(ticket):
        try:
            accept([call])
        except OperationalError as error:
            if not db.is_lock_timeout(error):
                raise
            _lines.note(ticket.line, got_lock=False)
            raise locked() from error
        _lines.note(ticket.line, got_lock=True)


def require_unlocked(user_id: int) -> None:
    """
    Refuse a call at once if another call of the user waits for a lock, and an earlier call did not get this lock.

    Raises:
        ServiceUnavailable: the lock is still taken.
    """
    if _lines.is_blocked((user_id,)):
        raise locked()


def _lines_of(call: SubmittedCall) -> tuple[Line, ...]:
    """Return the user's line and, for a follower, its channel's: all calls of a channel in flight use one relayer."""
    of_user = (call.caller.user_id,)
    return (of_user, (get_chain().id, *call.channel)) if call.is_follower else (of_user,)


def accept(calls: Sequence[SubmittedCall], *, lock_timeout: str | None = None) -> None:
    """
    Take the slot of each call, sign the calls whose slot is taken, and store them.

    Raises:
        IntegrityError: one of several calls failed; nothing is stored.
        OperationalError: a lock was not free in time; nothing is stored.
        SignerUnavailable: the remote signer does not respond.
    """
    signer = get_signer()
    policy = limits_of(calls, signer, lock_timeout=lock_timeout)
    try:
        with transaction.atomic(durable=True):
            take_and_store(calls, signer, policy)
    except IntegrityError as error:
        outcome = _NONCE_CONFLICTS.get(db.violated_constraint(error) or "")
        if len(calls) > 1 or outcome is None:
            raise
        calls[0].slot = Slot(0, outcome)


def limits_of(
    calls: Sequence[SubmittedCall], signer: Signer, *, lock_timeout: str | None = None
) -> dict[str, Any]:
    """
    Return the limits with which `take_and_store` takes slots. Call this before the transaction.

    Raises:
        SignerUnavailable: the remote signer does not respond.
    """
    return policy_of(calls, signer) | {
        "lock_timeout": lock_timeout,
        "relayer_lock_timeout": f"{contention.RELAYER_MILLISECONDS}ms",
    }


def take_and_store(calls: Sequence[SubmittedCall], signer: Signer, policy: dict[str, Any]) -> None:
    """Take the slots of the calls in the caller's transaction, and store those that have one; set each `slot`."""
    for call, slot in zip(calls, take_slots(calls, policy), strict=True):
        call.slot = slot
    taken = [call for call in calls if call.slot.outcome == "taken"]
    for call in taken:
        call.columns = call.to_store()
    if signer.is_remote:
        unsigned.keep([unsigned.of_call(call) for call in taken])
    elif taken:
        for call in taken:
            _sign(signer, call)
        insert_calls([call.columns for call in taken])


def try_slot(call: SubmittedCall) -> None:
    """Take the slot of a call and give it back: `call.slot` tells whether it would be accepted. Stores nothing."""
    policy = policy_of([call], get_signer())
    with transaction.atomic(durable=True):
        (call.slot,) = take_slots([call], policy)
        transaction.set_rollback(True)


def _sign(signer: Signer, call: SubmittedCall) -> None:
    """Add the bytes that a local key signs to the call's columns."""
    transaction = UnsignedTransaction(
        chain_id=get_chain().id,
        account_nonce=call.columns["account_nonce"],
        max_priority_fee_per_gas_wei=call.approval.fees.max_priority_fee_per_gas_wei,
        max_fee_per_gas_wei=call.approval.fees.max_fee_per_gas_wei,
        gas_limit=call.approval.gas.limit,
        to=call.signed.key_manager,
        data=call.query.calldata,
    )
    call.columns |= signed_columns(signer.sign(relayer=str(call.slot.relayer), transaction=transaction))
