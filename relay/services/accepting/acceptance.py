"""
Accept relay calls that the chain would execute now: hold their credits, take account nonces, sign, store.

`relay_take_slots` and `relay_insert_calls` do it for many calls in one transaction; `relay/functions.sql` has their
rules. Inside the transaction nothing leaves the process: hold, account nonce, signed bytes and rows commit together
or not at all, so a returned hash will be broadcast. With a remote signer, each function has a transaction of
its own, and the calls wait for their signatures in between (`relay.services.accepting.unsigned`).
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.db import IntegrityError, OperationalError, transaction

from credits.services.entries import open_account
from gateway.chain.config import get_chain
from gateway.chain.errors import SignerUnavailable
from gateway.chain.signing import Signer, get_signer
from gateway.common import db
from gateway.common.errors import DomainError
from relay.errors import RelayNonceTaken
from relay.pricing import cost_in_credits
from relay.services.accepting import contention, sponsoring, unsigned
from relay.services.accepting.calls import ApprovedCall
from relay.services.accepting.contention import BATCH_MILLISECONDS, Line, Lines, Ticket, locked
from relay.services.accepting.slots import (
    Slot,
    WaitsForSignature,
    debt_terms_of,
    hash_or_refusal,
    policy_of,
    take_slots,
)
from relay.services.accepting.sponsoring import Payers
from relay.services.accepting.unsigned import Unsigned, as_hex, insert_calls
from signer.transactions import SignedTransaction, UnsignedTransaction

logger = logging.getLogger(__name__)


class _AccountMissing(Exception):
    """One of the users has no credit account yet."""


@dataclass(frozen=True, slots=True)
class LinedUpCall:
    """An approved call that its own thread accepts, outside batches: another transaction holds a lock that it needs."""

    approved: ApprovedCall
    ticket: Ticket


_lines = Lines()
_Accepted = str | ApprovedCall | LinedUpCall | Exception


def accept_together(batch: Sequence[ApprovedCall], signer: Signer) -> list[_Accepted]:
    """
    Accept calls in one transaction; return for each its hash, its error, or the call itself if it must wait.

    Only the first call of a channel is accepted; the others are returned for the next batch, whose checks see the
    first. If a lock is not free within the lock timeout, no call is accepted; each is returned as a `LinedUpCall`.

    Raises:
        IntegrityError, _AccountMissing: one of several calls failed; the caller then accepts each one alone.
    """
    first_of = {approved.channel: place for place, approved in reversed(list(enumerate(batch)))}
    outcomes: dict[int, _Accepted] = dict(enumerate(batch))
    joint: dict[int, ApprovedCall] = {}
    for place in sorted(first_of.values()):
        if any(_lines.has(line) for line in _lines_of(batch[place])):
            outcomes[place] = _line_up(batch[place])
        else:
            joint[place] = batch[place]
    if joint:
        outcomes |= zip(joint, _accept_quickly(list(joint.values()), signer), strict=True)
    return [outcomes[place] for place in range(len(batch))]


def _accept_quickly(batch: Sequence[ApprovedCall], signer: Signer) -> Sequence[_Accepted]:
    try:
        return _accept(batch, signer, lock_timeout=f"{BATCH_MILLISECONDS}ms")
    except OperationalError as error:
        if not db.is_lock_timeout(error):
            raise
        logger.warning("a lock is held by another transaction; %s calls are accepted one by one", len(batch))
        return [_line_up(approved) for approved in batch]


def _lines_of(approved: ApprovedCall) -> tuple[Line, ...]:
    """Return the user's line and, for a follower, its channel's: all calls of a channel in flight use one relayer."""
    of_user = (approved.request.caller.user_id,)
    is_follower = approved.request.call.relay_nonce > approved.approval.chain_nonce
    return (of_user, approved.channel) if is_follower else (of_user,)


def _line_up(approved: ApprovedCall) -> LinedUpCall:
    # A follower joins its user's line if there is one: the checks of the follower may depend on a call in it.
    line = next(filter(_lines.has, _lines_of(approved)), _lines_of(approved)[-1])
    return LinedUpCall(approved, _lines.join(line))


def require_unlocked(user_id: int) -> None:
    """
    Refuse a call at once if another call of the user waits for a lock, and an earlier call did not get this lock.

    Raises:
        ServiceUnavailable: the lock is still taken.
    """
    if _lines.is_blocked((user_id,)):
        raise locked()


def accept_alone(call: LinedUpCall) -> str | ApprovedCall:
    """
    Accept the call when the earlier calls of its line have ended.

    Returns its hash, or the call itself if its sponsor must decide again.

    Raises:
        ServiceUnavailable: another transaction keeps the lock for too long; nothing is stored.
        DomainError: the call was refused; nothing is stored.
    """
    with _lines.turn(call.ticket):
        try:
            (outcome,) = _accept([call.approved], get_signer())
        except OperationalError as error:
            if not db.is_lock_timeout(error):
                raise
            _lines.note(call.ticket.line, got_lock=False)
            raise locked() from error
        _lines.note(call.ticket.line, got_lock=True)
    if isinstance(outcome, Exception):
        raise outcome
    return outcome


def _accept(
    batch: Sequence[ApprovedCall], signer: Signer, *, lock_timeout: str | None = None
) -> list[str | ApprovedCall | Exception]:
    """Decide which sponsors pay. Then accept the calls that no sponsor refuses and about which no question is open."""
    if not any(approved.wants_sponsor for approved in batch):
        return _accept_decided(batch, signer, lock_timeout=lock_timeout)
    outcomes: dict[int, str | ApprovedCall | Exception] = dict(enumerate(sponsoring.decided(batch)))
    paid = {
        place: one
        for place, one in outcomes.items()
        if isinstance(one, ApprovedCall) and one.question is None
    }
    if paid:
        accepted = _accept_decided(list(paid.values()), signer, lock_timeout=lock_timeout)
        outcomes |= zip(paid, accepted, strict=True)
    return [outcomes[place] for place in range(len(batch))]


def _accept_decided(
    batch: Sequence[ApprovedCall],
    signer: Signer,
    *,
    lock_timeout: str | None = None,
    may_finish_waiting: bool = True,
) -> list[str | ApprovedCall | Exception]:
    try:
        policy = policy_of(batch, signer) | {
            "lock_timeout": lock_timeout,
            "relayer_lock_timeout": f"{contention.RELAYER_MILLISECONDS}ms",
        }
    except SignerUnavailable as away:
        return [away] * len(batch)
    try:
        with transaction.atomic(durable=True):
            taken, outcomes = _take(batch, policy)
            if signer.is_remote:
                calls = {
                    place: Unsigned(_row_of(batch[place], slot), str(slot.relayer))
                    for place, slot in taken.items()
                }
                unsigned.keep(list(calls.values()))
            else:
                outcomes |= _sign_and_store(batch, taken, signer)
    except _AccountMissing:
        if len(batch) > 1:
            raise
        open_account(user_id=batch[0].request.caller.user_id)
        return _accept_decided(batch, signer, lock_timeout=lock_timeout)
    except IntegrityError as error:
        constraint = db.violated_constraint(error)
        if len(batch) > 1 or constraint not in {_ACTIVE, _WAITING}:
            raise
        outcome = _finish_waiting(batch[0]) if constraint == _WAITING and may_finish_waiting else None
        if outcome is _WITHDRAWN:
            return _accept_decided(batch, signer, lock_timeout=lock_timeout, may_finish_waiting=False)
        # Without an outcome, an active call uses the nonce.
        return [outcome or RelayNonceTaken(nonce=batch[0].request.call.relay_nonce)]
    if signer.is_remote:
        outcomes |= _finish(calls, outcomes)
    return [outcomes[place] for place in range(len(batch))]


# The constraints that reserve a relay nonce for an active call, and for a call that waits for its signature.
_ACTIVE, _WAITING = "relaytransaction_active_nonce", "unsignedcall_relay_nonce"
_WITHDRAWN = SignerUnavailable("The call that had this nonce is withdrawn.")


def _finish_waiting(approved: ApprovedCall) -> str | Exception | None:
    """
    Complete the earlier call that waits for its signature on this call's relay nonce; its caller has no answer yet.

    Returns:
        the earlier call's hash, if user and payload are the same, as when a wallet signs again after a 503;
        the signer's error, while the earlier call still waits;
        `_WITHDRAWN`, if the earlier call is withdrawn or gone, so that the nonce is free;
        None, if the earlier call is another one and was stored.
    """
    request = approved.request
    finished = unsigned.finish_waiting(
        key_manager=request.call.key_manager,
        controller=request.identity.controller,
        relay_nonce=request.call.relay_nonce,
    )
    if finished is None:
        return _WITHDRAWN
    waiting, outcome = finished
    if isinstance(outcome, str):
        is_same = (waiting.row["user_id"], unsigned.unhex(waiting.row["payload"])) == (
            request.caller.user_id,
            request.call.payload,
        )
        return outcome if is_same else None
    return outcome if unsigned.is_waiting(waiting) else _WITHDRAWN


def assessed(approved: ApprovedCall) -> Payers:
    """Return who would pay for the call, and the error with which it would be refused now, if any. Stores nothing."""
    payers = sponsoring.payers_of(approved)
    while payers.refusal is None:
        outcome = _tried(payers.call)
        if not isinstance(outcome, ApprovedCall):
            return payers._replace(refusal=outcome)
        payers = sponsoring.payers_of(outcome)
    return payers


def _tried(approved: ApprovedCall) -> ApprovedCall | DomainError | None:
    """Return the error with which the call would be refused, or None; the call itself if a sponsor must decide."""
    policy = policy_of([approved], get_signer())
    with transaction.atomic(durable=True):
        (slot,) = take_slots([approved], policy)
        transaction.set_rollback(True)
    if slot.outcome in {"taken", "repeated"}:
        return None
    refusal = hash_or_refusal(approved, slot, debt_terms_of([approved], [slot]))
    if not isinstance(refusal, ApprovedCall | DomainError):
        raise refusal if isinstance(refusal, Exception) else RuntimeError(refusal)
    return refusal


def _take(
    batch: Sequence[ApprovedCall], policy: dict[str, Any]
) -> tuple[dict[int, Slot], dict[int, str | ApprovedCall | Exception]]:
    """Take a slot for each call; return the slots taken, and the outcomes of the other calls, by place in the batch."""
    taken: dict[int, Slot] = {}
    outcomes: dict[int, str | ApprovedCall | Exception] = {}
    slots = take_slots(batch, policy)
    terms = debt_terms_of(batch, slots)
    for slot in slots:
        approved = batch[slot.place]
        if slot.outcome == "taken":
            taken[slot.place] = slot
        elif slot.outcome == "no-account":
            raise _AccountMissing
        else:
            outcomes[slot.place] = hash_or_refusal(approved, slot, terms)
    return taken, outcomes


def _sign_and_store(
    batch: Sequence[ApprovedCall], taken: dict[int, Slot], signer: Signer
) -> dict[int, str | Exception]:
    """Sign the calls with local keys and store them, in the transaction that took their slots; return the hashes."""
    rows = {}
    for place, slot in taken.items():
        row = _row_of(batch[place], slot)
        signed = _sign(signer, batch[place], relayer=str(slot.relayer), account_nonce=row["account_nonce"])
        rows[place] = row | {"transaction_hash": signed.transaction_hash, "raw": as_hex(signed.raw)}
    if rows:
        insert_calls(list(rows.values()))
    return {place: row["transaction_hash"] for place, row in rows.items()}


def _finish(
    calls: dict[int, Unsigned], outcomes: dict[int, str | ApprovedCall | Exception]
) -> dict[int, str | Exception]:
    """Let the remote signer sign the calls, and store them; include calls whose slots an equal request took before."""
    finished = dict(zip(calls, unsigned.complete(list(calls.values())), strict=True)) if calls else {}
    for place, outcome in outcomes.items():
        if isinstance(outcome, WaitsForSignature):
            finished[place] = unsigned.finish_repeated(outcome.hold_id)
    return finished


def _sign(signer: Signer, approved: ApprovedCall, *, relayer: str, account_nonce: int) -> SignedTransaction:
    return signer.sign(
        relayer=relayer,
        transaction=UnsignedTransaction(
            chain_id=get_chain().id,
            account_nonce=account_nonce,
            max_priority_fee_per_gas_wei=approved.approval.fees.max_priority_fee_per_gas_wei,
            max_fee_per_gas_wei=approved.approval.fees.max_fee_per_gas_wei,
            gas_limit=approved.gas_limit,
            to=approved.request.call.key_manager,
            data=approved.query.calldata,
        ),
    )


def _row_of(approved: ApprovedCall, slot: Slot) -> dict[str, Any]:
    """Return the columns of the call and of its attempt, without the signed bytes."""
    request, approval = approved.request, approved.approval
    expected = cost_in_credits(
        gas=approval.gas.expected, price_wei=approval.fees.expected_price_wei, credit_wei=settings.CREDIT_WEI
    )
    return {
        "chain_id": get_chain().id,
        "user_id": request.caller.user_id,
        "profile_address": request.caller.profile_address,
        "key_manager_address": request.call.key_manager,
        "controller_address": request.identity.controller,
        "digest": request.identity.digest,
        "generation": approved.rows.generation,
        "channel": approved.query.channel,
        "relay_nonce": request.call.relay_nonce,
        "validity": request.call.validity,
        "payload": as_hex(request.call.payload),
        "signature": as_hex(request.call.signature),
        "is_follower": request.call.relay_nonce > approval.chain_nonce,
        "relayer_id": slot.relayer_id,
        "account_nonce": slot.account_nonce,
        "hold_id": slot.hold_id,
        "gas_limit": approval.gas.limit,
        "max_fee_per_gas_wei": approval.fees.max_fee_per_gas_wei,
        "max_priority_fee_per_gas_wei": approval.fees.max_priority_fee_per_gas_wei,
        "expected_cost": expected - sponsoring.part_of(expected, approved.sponsorship),
        "quoted_cost": approved.quoted_cost,
        "credits_before": slot.balance,
        "request_id": request.request_id,
        "created_at": request.now.isoformat(),
    }
