"""
Accept relay calls that the chain would execute now: hold their credits, take account nonces, sign, store.

`relay_take_slots` and `relay_insert_calls` do it for many calls in one transaction; `relay/functions.sql` has their
rules. Inside the transaction nothing leaves the process: hold, account nonce, signed bytes and rows commit together
or not at all, so a returned hash will be broadcast. With a remote signer, each function has a transaction of
its own, and the calls wait for their signatures in between (`relay.services.accepting.unsigned`).
"""

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import IntegrityError, OperationalError, transaction

from credits.errors import InsufficientCredits, KeyConflict
from credits.queries import DebtTerms, debt_terms
from credits.services.entries import open_account
from gateway.chain.config import get_chain
from gateway.chain.errors import SignerUnavailable
from gateway.chain.lsp25 import RelayCall
from gateway.chain.signing import Signer, get_signer
from gateway.chain.types import RelayQuery
from gateway.common import db
from gateway.common.errors import DomainError
from gateway.web import tracing
from relay.errors import (
    ChannelBusy,
    QuoteUsed,
    RelayersBusy,
    RelayNonceGap,
    RelayNonceTaken,
    RelayPaused,
    RelayShareUsed,
)
from relay.models import Loss
from relay.pricing import cost_in_credits
from relay.queries.calls import CallRows, Identity
from relay.services.accepting import contention, unsigned
from relay.services.accepting.contention import BATCH_MILLISECONDS, Line, Lines, Ticket, locked
from relay.services.accepting.preflight import Approval
from relay.services.accepting.unsigned import Unsigned, as_hex, insert_calls
from relay.services.fleet import losses
from relay.services.fleet.relayers import seconds_until_next_block
from signer.transactions import SELF_TRANSFER_GAS, SignedTransaction, UnsignedTransaction

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Caller:
    """The owner of a profile who makes a request, with a session that is not verified yet, or without a session."""

    user_id: int
    profile_address: str
    session_id: UUID | None = None
    # Without a token, the call's signature is the only authorisation.
    is_signed_in: bool = True


@dataclass(frozen=True, slots=True)
class CallRequest:
    """A relay call as submitted."""

    caller: Caller
    call: RelayCall
    identity: Identity
    now: datetime
    # The id of the submitted quote, which may be another user's.
    quote_id: UUID | None = None
    # The id of the HTTP request, for the log and for support.
    request_id: str = ""
    # Set where tracing is on.
    trace: tracing.Request | None = None
    # Whether the chain has just said that profile and key manager belong together.
    is_pair_verified: bool = False


@dataclass(frozen=True, slots=True)
class ApprovedCall:
    """A request that the chain would execute now."""

    request: CallRequest
    rows: CallRows
    query: RelayQuery
    approval: Approval

    @property
    def hold_key(self) -> str:
        """The key of this generation of the call, so that equal requests are charged once."""
        identity = self.request.identity
        return f"relay:{identity.digest}:{identity.controller}:{self.rows.generation}"

    @property
    def channel(self) -> tuple[str, str, int]:
        """The call's nonce channel at the key manager."""
        return self.query.key_manager, self.query.controller, self.query.channel

    @property
    def gas_limit(self) -> int:
        return self.approval.gas.limit

    @property
    def worst_cost_wei(self) -> int:
        return self.gas_limit * self.approval.fees.max_fee_per_gas_wei

    @property
    def hold_credits(self) -> int:
        """The hold: the call's highest cost for its user, bounded by the quote."""
        worst = cost_in_credits(gas=1, price_wei=self.worst_cost_wei, credit_wei=settings.CREDIT_WEI)
        return worst if self.quoted_cost is None else min(worst, self.quoted_cost)

    @property
    def quoted_cost(self) -> int | None:
        """The credits of the submitted quote, if any."""
        return None if self.rows.quote is None else self.rows.quote.credits

    @property
    def badge_debt(self) -> int:
        """The debt limit of the user's badges. It is 0 for untrusted code, which controls its own gas use."""
        return self.rows.badge_debt if self.approval.is_trusted else 0

    @property
    def risk_wei(self) -> int:
        """The service's highest loss if untrusted code invalidates the call before its broadcast."""
        return 0 if self.approval.is_trusted else SELF_TRANSFER_GAS * get_chain().fees.cap_wei


@dataclass(frozen=True, slots=True)
class _Slot:
    """The result of `relay_take_slots` for one call; `relay/functions.sql` describes the outcomes."""

    place: int
    outcome: str
    hold_id: int | None
    balance: int | None
    user_id: int | None
    number: int | None
    relayer_id: int | None
    relayer: str | None
    account_nonce: int | None
    transaction_hash: str | None


class _WaitsForSignature(Exception):
    """An equal call was accepted before, and has no hash yet."""

    def __init__(self, hold_id: int) -> None:
        super().__init__("the call waits for its signature")
        self.hold_id = hold_id


class _AccountMissing(Exception):
    """One of the users has no credit account yet."""


@dataclass(frozen=True, slots=True)
class LinedUpCall:
    """An approved call that its own thread accepts alone, because another transaction holds a lock that it needs."""

    approved: ApprovedCall
    ticket: Ticket


_lines = Lines()
_Accepted = str | ApprovedCall | LinedUpCall | Exception


def accept_together(batch: Sequence[ApprovedCall], signer: Signer) -> list[_Accepted]:
    """
    Accept calls in one transaction; return for each its hash, its error, or the call, if it is not accepted yet.

    Only the first call of a channel is accepted; the others are returned for the next batch, which sees the first. If
    a lock cannot be had within a moment, none is accepted, and each is returned as one to accept alone.

    Raises:
        IntegrityError, _AccountMissing: one of several calls must be accepted alone.
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
    """Return the user's line, and for a follower, which depends on one relayer, that of its channel."""
    of_user = (approved.request.caller.user_id,)
    is_follower = approved.request.call.relay_nonce > approved.approval.chain_nonce
    return (of_user, approved.channel) if is_follower else (of_user,)


def _line_up(approved: ApprovedCall) -> LinedUpCall:
    # Behind an earlier call of the user, which the follower may have to see.
    line = next(filter(_lines.has, _lines_of(approved)), _lines_of(approved)[-1])
    return LinedUpCall(approved, _lines.join(line))


def require_unlocked(user_id: int) -> None:
    """
    Refuse a call at once while another call of the user waits for a lock that earlier ones did not get.

    Raises:
        ServiceUnavailable: one does.
    """
    if _lines.is_blocked((user_id,)):
        raise locked()


def accept_alone(call: LinedUpCall) -> str:
    """
    Accept the call after earlier ones of its user, and return its hash.

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
) -> list[str | Exception]:
    try:
        policy = _policy(batch, signer) | {
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
        return _accept(batch, signer, lock_timeout=lock_timeout)
    except IntegrityError as error:
        if len(batch) > 1 or db.violated_constraint(error) not in _NONCE_TAKEN:
            raise
        # The nonce is used by an active call of another account, or by a call that waits for its signature.
        return [RelayNonceTaken(nonce=batch[0].request.call.relay_nonce)]
    if signer.is_remote:
        outcomes |= _finish(calls, outcomes)
    return [outcomes[place] for place in range(len(batch))]


_NONCE_TAKEN = {"relaytransaction_active_nonce", "unsignedcall_relay_nonce"}


def refusal_of(approved: ApprovedCall) -> DomainError | None:
    """Return the error with which the call would be refused now, or None; all writes are rolled back."""
    policy = _policy([approved], get_signer())
    with transaction.atomic(durable=True):
        (slot,) = take_slots([approved], policy)
        transaction.set_rollback(True)
    if slot.outcome in {"taken", "repeated"}:
        return None
    refusal = _hash_or_refusal(approved, slot, _debt_terms([approved], [slot]))
    if not isinstance(refusal, DomainError):
        raise refusal if isinstance(refusal, Exception) else RuntimeError(refusal)
    return refusal


def _take(
    batch: Sequence[ApprovedCall], policy: dict[str, Any]
) -> tuple[dict[int, _Slot], dict[int, str | Exception]]:
    """Take a slot for each call; return the slots taken, and the outcomes of the other calls, by place."""
    taken: dict[int, _Slot] = {}
    outcomes: dict[int, str | Exception] = {}
    slots = take_slots(batch, policy)
    terms = _debt_terms(batch, slots)
    for slot in slots:
        approved = batch[slot.place]
        if slot.outcome == "taken":
            taken[slot.place] = slot
        elif slot.outcome == "no-account":
            raise _AccountMissing
        else:
            outcomes[slot.place] = _hash_or_refusal(approved, slot, terms)
    return taken, outcomes


def _debt_terms(batch: Sequence[ApprovedCall], slots: Sequence[_Slot]) -> dict[int, DebtTerms]:
    """Return the debt terms of the users whose credits are insufficient, by place."""
    places = [slot.place for slot in slots if slot.outcome == "insufficient"]
    users = [(batch[place].request.caller.user_id, batch[place].badge_debt) for place in places]
    return dict(zip(places, debt_terms(users), strict=True)) if places else {}


def _sign_and_store(
    batch: Sequence[ApprovedCall], taken: dict[int, _Slot], signer: Signer
) -> dict[int, str | Exception]:
    """Sign with a local key and store, in the transaction that took the slots."""
    rows = {}
    for place, slot in taken.items():
        row = _row_of(batch[place], slot)
        signed = _sign(signer, batch[place], relayer=str(slot.relayer), account_nonce=row["account_nonce"])
        rows[place] = row | {"transaction_hash": signed.transaction_hash, "raw": as_hex(signed.raw)}
    if rows:
        insert_calls(list(rows.values()))
    return {place: row["transaction_hash"] for place, row in rows.items()}


def _finish(calls: dict[int, Unsigned], outcomes: dict[int, str | Exception]) -> dict[int, str | Exception]:
    """Sign remotely and store the calls, including those that an equal request took before."""
    finished = dict(zip(calls, unsigned.complete(list(calls.values())), strict=True)) if calls else {}
    for place, outcome in outcomes.items():
        if isinstance(outcome, _WaitsForSignature):
            finished[place] = unsigned.finish_repeated(outcome.hold_id)
    return finished


_TAKE_SLOTS = "SELECT * FROM relay_take_slots(%(calls)s::jsonb, %(policy)s::jsonb)"


def take_slots(batch: Sequence[ApprovedCall], policy: dict[str, Any]) -> list[_Slot]:
    calls = [
        {
            "place": place,
            "user_id": approved.request.caller.user_id,
            "key": approved.hold_key,
            "credits": approved.hold_credits,
            "debt_limit": approved.badge_debt,
            "key_manager": approved.request.call.key_manager,
            "controller": approved.request.identity.controller,
            "channel": approved.query.channel,
            "relay_nonce": approved.request.call.relay_nonce,
            "chain_nonce": approved.approval.chain_nonce,
            "worst_cost_wei": approved.worst_cost_wei,
            "risk_wei": approved.risk_wei,
            "quote": approved.request.quote_id and str(approved.request.quote_id),
            "now": approved.request.now.isoformat(),
        }
        for place, approved in enumerate(batch)
    ]
    params = {"calls": json.dumps(calls), "policy": json.dumps(policy)}
    return [_Slot(*row) for row in db.all_rows(_TAKE_SLOTS, params)]


def _policy(batch: Sequence[ApprovedCall], signer: Signer) -> dict[str, Any]:
    """
    Return the limits for taking slots.

    This may call a remote signer, so it runs before the transaction.

    Raises:
        SignerUnavailable: the remote signer does not answer.
    """
    if signer.is_remote:
        signer.require_answers()
    has_risk = any(approved.risk_wei for approved in batch)
    limits = losses.limits_for(Loss.Kind.UNTRUSTED) if has_risk else losses.NO_LOSS
    return {
        "chain": get_chain().id,
        "addresses": signer.addresses(),
        "in_flight": settings.RELAY_MAX_IN_FLIGHT,
        "followers": settings.RELAY_MAX_FOLLOWERS,
        "share_percent": settings.RELAY_USER_SHARE_PERCENT,
        "per_hour": settings.RELAY_CANCELLED_CALLS_PER_HOUR,
        "per_day": settings.RELAY_CANCELLED_CALLS_PER_DAY,
        "user_loss_wei": limits.of_user,
        "service_loss_wei": limits.of_service,
    }


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


def _row_of(approved: ApprovedCall, slot: _Slot) -> dict[str, Any]:
    """Return the columns of the call and of its attempt, without the signed bytes."""
    request, approval = approved.request, approved.approval
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
        "expected_cost": cost_in_credits(
            gas=approval.gas.expected,
            price_wei=approval.fees.expected_price_wei,
            credit_wei=settings.CREDIT_WEI,
        ),
        "quoted_cost": approved.quoted_cost,
        "credits_before": slot.balance,
        "request_id": request.request_id,
        "created_at": request.now.isoformat(),
    }


def _hash_or_refusal(approved: ApprovedCall, slot: _Slot, terms: Mapping[int, DebtTerms]) -> str | Exception:
    call = approved.request.call
    number = int(slot.number or 0)
    match slot.outcome:
        case "repeated":
            return _hash_of_repeat(approved, slot)
        case "insufficient":
            limit, lendable = terms[slot.place]
            return InsufficientCredits(
                required=approved.hold_credits, available=number, debt_limit=limit, lendable=lendable
            )
        case "nonce-taken":
            return RelayNonceTaken(nonce=call.relay_nonce)
        case "nonce-gap":
            return RelayNonceGap(
                f"No pending call uses nonce {number} of channel {call.channel}.",
                expectedNonce=str(number),
            )
        case "channel-full":
            return ChannelBusy(
                f"{settings.RELAY_MAX_FOLLOWERS} calls of channel {call.channel} are already waiting.",
                retry_after=get_chain().block_seconds,
                maximumFollowers=settings.RELAY_MAX_FOLLOWERS,
            )
        case "share-used":
            return RelayShareUsed(
                f"{number} calls of the profile are in flight.",
                retry_after=seconds_until_next_block(),
                maximum=number,
            )
        case "channel-busy":
            return RelayersBusy(
                "The relayer of this channel is full. Retry the call.",
                retry_after=seconds_until_next_block(),
            )
        case "relayers-busy":
            return RelayersBusy(
                "Every relayer is full. Retry the call.", retry_after=seconds_until_next_block()
            )
        case "quote-used":
            return QuoteUsed("A call was already accepted with this quote. Prepare the call again.")
        case "loss-limit":
            return RelayPaused("Calls of untrusted code are not accepted at the moment. Retry later.")
    return RuntimeError(f"relay_take_slots answered {slot.outcome}")


def _hash_of_repeat(approved: ApprovedCall, slot: _Slot) -> str | Exception:
    if slot.user_id != approved.request.caller.user_id:
        return KeyConflict(key=approved.hold_key)
    if slot.transaction_hash is None:
        if get_signer().is_remote:
            return _WaitsForSignature(int(slot.hold_id or 0))
        return RuntimeError("a relay hold has no relay transaction")
    return slot.transaction_hash
