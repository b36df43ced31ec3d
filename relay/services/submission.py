"""
Accept a relay call: hold its credits, sign it, store it, and only then answer.

A call takes two steps, each together with the calls that other threads bring at the same moment; one call is a
batch of one. Looking: one statement reads what the rows say, and one trip to the node reads the chain and executes
the very transaction that would be signed. Accepting: one transaction in which `relay_take_slots` sets credits
aside and takes account nonces, the relayers' keys sign, and `relay_store_calls` stores the signed bytes.

Inside the transaction nothing leaves the process: hold, account nonce, signed bytes and rows commit together or not
at all, so an answered hash is a hash that will be broadcast.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import IntegrityError, transaction

from credits.errors import InsufficientCredits, KeyConflict
from credits.services.entries import open_account
from gateway.chain.client import get_chain_client
from gateway.chain.config import get_chain
from gateway.chain.contracts import encode_execute_relay_call
from gateway.chain.lsp25 import RelayCall, relay_digest
from gateway.chain.signatures import normalise_signature, recover_address
from gateway.chain.signing import SignedTransaction, UnsignedTransaction, get_signer
from gateway.chain.types import RelayQuery, RelayState
from gateway.common import db
from gateway.common.batching import Together
from gateway.common.errors import DomainError
from gateway.common.logging import request_id
from relay import queries
from relay.errors import (
    ChannelBusy,
    RelayersBusy,
    RelayNonceGap,
    RelayNonceTaken,
    RelayPaused,
    RelayShareUsed,
)
from relay.pricing import cost_in_credits
from relay.queries import CallKey, CallRows, Identity
from relay.services import gas_limits, limits, preflight
from relay.services.preflight import Approval
from relay.services.relayers import seconds_until_next_block
from users.services.sessions import require_active_state

# As many as request threads may wait; the node and PostgreSQL take a few milliseconds for them.
_MOST_TOGETHER = 32
# Measured with 8 clients: against 3 ms, a call costs a fifth less and is answered sooner, because batches are larger.
_GATHER_SECONDS = 0.008


@dataclass(frozen=True, slots=True)
class Caller:
    """Who hands in a call: the owner of a profile, with a session whose end has yet to be ruled out, or without."""

    user_id: int
    profile_address: str
    session_id: UUID | None = None
    # Without a token the signature of the call is its only authorisation.
    is_signed_in: bool = True


def execute(*, caller: Caller, call: RelayCall, now: datetime) -> str:
    """
    Relay the call for the caller's profile and return the transaction's hash.

    A repeat of a call that is in progress or executed returns the same hash. A call that
    ended as `Failed`, `Cancelled` or `Expired` is tried anew; for callers without a token
    only as often as `limits.check_failures` allows.

    Raises:
        NotAuthenticated: the session or the account has ended.
        DomainError: the call was refused; nothing is stored, held or sent.
    """
    call, identity = identify(call=call)
    request = _Request(caller, call, identity, now)
    try:
        view = _look(request)
        if view.rows.transaction_hash is not None:
            return view.rows.transaction_hash
        return _accept(_approved(request, view))
    except DomainError:
        # An equal request may have been accepted meanwhile, and have taken this one's nonce or credits.
        accepted = queries.active_transaction(user_id=caller.user_id, identity=identity)
        if accepted is None:
            raise
        return accepted.transaction_hash


def identify(*, call: RelayCall) -> tuple[RelayCall, Identity]:
    """
    Return the call with a normalised signature, and its identity.

    Raises:
        UnusableSignature: no address can be recovered from the signature.
    """
    signature = normalise_signature(call.signature)
    digest = relay_digest(
        chain_id=get_chain().id,
        key_manager=call.key_manager,
        relay_nonce=call.relay_nonce,
        validity=call.validity,
        payload=call.payload,
    )
    controller = recover_address(digest, signature)
    normalised = RelayCall(call.key_manager, call.payload, signature, call.relay_nonce, call.validity)
    return normalised, Identity("0x" + digest.hex(), controller)


@dataclass(frozen=True, slots=True)
class _Request:
    """A relay call as it was handed in."""

    caller: Caller
    call: RelayCall
    identity: Identity
    now: datetime

    @property
    def channel(self) -> tuple[str, str, int]:
        """The queue that the key manager keeps for this call."""
        return self.call.key_manager, self.identity.controller, self.call.channel


@dataclass(frozen=True, slots=True)
class _View:
    """What the rows and the chain say of a request; without a query where the rows have the answer already."""

    rows: CallRows
    query: RelayQuery | None = None
    state: RelayState | None = None


@dataclass(frozen=True, slots=True)
class _Approved:
    """A request that the chain would execute now."""

    request: _Request
    rows: CallRows
    query: RelayQuery
    approval: Approval
    request_id: str

    @property
    def hold_key(self) -> str:
        """Names the try of this call, so that of many equal requests only one is charged."""
        identity = self.request.identity
        return f"relay:{identity.digest}:{identity.controller}:{self.rows.generation}"

    @property
    def gas_limit(self) -> int:
        return self.approval.gas.limit

    @property
    def worst_cost_wei(self) -> int:
        return self.gas_limit * self.approval.fees.max_fee_per_gas_wei


def _look_together(requests: Sequence[_Request]) -> list[_View | Exception]:
    """Read what the rows say of each request, and the chain for those that the rows neither answer nor refuse."""
    keys = [
        CallKey(request.identity, request.caller.user_id, request.caller.session_id, request.now)
        for request in requests
    ]
    views: list[_View | Exception] = []
    queried: list[tuple[int, CallRows, RelayQuery]] = []
    for place, (request, rows) in enumerate(zip(requests, queries.rows_of_calls(keys), strict=True)):
        try:
            _check_rows(request, rows)
        except DomainError as refusal:
            views.append(refusal)
            continue
        views.append(_View(rows))
        if rows.transaction_hash is None:
            queried.append((place, rows, _query_of(request)))
    if queried:
        states = get_chain_client().read_relay_states([query for _, _, query in queried])
        for (place, rows, query), state in zip(queried, states, strict=True):
            views[place] = _View(rows, query, state)
    return views


_look = Together(_look_together, most=_MOST_TOGETHER, gather_seconds=_GATHER_SECONDS)


def _check_rows(request: _Request, rows: CallRows) -> None:
    require_active_state(rows.session_state)
    if rows.transaction_hash is not None:
        return
    if not request.caller.is_signed_in:
        limits.check_failures(rows=rows)
    if rows.is_paused:
        raise RelayPaused
    limits.check_cancelled_calls(rows=rows, now=request.now)
    preflight.check_validity(call=request.call, now=int(request.now.timestamp()))


def _query_of(request: _Request) -> RelayQuery:
    call = request.call
    return RelayQuery(
        profile=request.caller.profile_address,
        key_manager=call.key_manager,
        controller=request.identity.controller,
        channel=call.channel,
        sender=get_signer().addresses()[0],
        calldata=encode_execute_relay_call(
            signature=call.signature, nonce=call.relay_nonce, validity=call.validity, payload=call.payload
        ),
        gas_limit=gas_limits.known_limit(profile=request.caller.profile_address, call=call),
        gas_cap=settings.RELAY_MAX_GAS,
    )


def _approved(request: _Request, view: _View) -> _Approved:
    if view.query is None or view.state is None:
        raise RuntimeError("the rows answered no hash, so the chain was read")
    approval = preflight.approve(
        call=request.call, query=view.query, state=view.state, trusted_codes=view.rows.trusted_codes
    )
    return _Approved(request, view.rows, view.query, approval, request_id() or "")


class _AccountMissing(Exception):
    """One of the users has no credit account yet."""


def _accept_together(batch: Sequence[_Approved]) -> list[str | Exception]:
    """Accept the calls in one transaction; return for each its hash, or why it was refused."""
    try:
        with transaction.atomic(durable=True):
            return _accept_batch(batch)
    except _AccountMissing:
        if len(batch) > 1:
            raise
        open_account(user_id=batch[0].request.caller.user_id)
        return _accept_together(batch)
    except IntegrityError as error:
        if len(batch) > 1 or db.violated_constraint(error) != "relaytransaction_active_nonce":
            raise
        # An active call through another account has this nonce.
        raise RelayNonceTaken(nonce=batch[0].request.call.relay_nonce) from error


# A call must see those of its channel that were accepted before it, so it waits for them.
_accept = Together(
    _accept_together,
    most=_MOST_TOGETHER,
    key=lambda approved: approved.request.channel,
    gather_seconds=_GATHER_SECONDS,
)


def _accept_batch(batch: Sequence[_Approved]) -> list[str | Exception]:
    outcomes: dict[int, str | Exception] = {}
    slots = _take_slots(batch)
    stored = []
    for slot in slots:
        approved = batch[slot.place]
        if slot.outcome == "taken":
            signed = _sign(approved, slot)
            stored.append(_row_of(approved, slot, signed))
            outcomes[slot.place] = signed.transaction_hash
        elif slot.outcome == "no-account":
            raise _AccountMissing
        else:
            outcomes[slot.place] = _hash_or_refusal(approved, slot)
    if stored:
        db.first_row(_STORE_CALLS, {"calls": json.dumps(stored), "chain": get_chain().id})
    return [outcomes[place] for place in range(len(batch))]


@dataclass(frozen=True, slots=True)
class _Slot:
    """What `relay_take_slots` answered for one call; `relay/functions.sql` says what each outcome means."""

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


_TAKE_SLOTS = "SELECT * FROM relay_take_slots(%(calls)s::jsonb, %(policy)s::jsonb)"
_STORE_CALLS = "SELECT relay_store_calls(%(calls)s::jsonb, %(chain)s)"


def _take_slots(batch: Sequence[_Approved]) -> list[_Slot]:
    calls = [
        {
            "place": place,
            "user_id": approved.request.caller.user_id,
            "key": approved.hold_key,
            "credits": cost_in_credits(
                gas=approved.gas_limit,
                price_wei=approved.approval.fees.max_fee_per_gas_wei,
                credit_wei=settings.CREDIT_WEI,
            ),
            "debt_limit": approved.rows.debt_limit,
            "key_manager": approved.request.call.key_manager,
            "controller": approved.request.identity.controller,
            "channel": approved.request.call.channel,
            "relay_nonce": approved.request.call.relay_nonce,
            "chain_nonce": approved.approval.chain_nonce,
            "worst_cost_wei": approved.worst_cost_wei,
        }
        for place, approved in enumerate(batch)
    ]
    policy = {
        "chain": get_chain().id,
        "addresses": get_signer().addresses(),
        "in_flight": settings.RELAY_MAX_IN_FLIGHT,
        "followers": settings.RELAY_MAX_FOLLOWERS,
        "share_percent": settings.RELAY_USER_SHARE_PERCENT,
    }
    params = {"calls": json.dumps(calls), "policy": json.dumps(policy)}
    return [_Slot(*row) for row in db.all_rows(_TAKE_SLOTS, params)]


def _sign(approved: _Approved, slot: _Slot) -> SignedTransaction:
    return get_signer().sign(
        relayer=str(slot.relayer),
        transaction=UnsignedTransaction(
            chain_id=get_chain().id,
            account_nonce=int(slot.account_nonce or 0),
            max_priority_fee_per_gas_wei=approved.approval.fees.max_priority_fee_per_gas_wei,
            max_fee_per_gas_wei=approved.approval.fees.max_fee_per_gas_wei,
            gas_limit=approved.gas_limit,
            to=approved.request.call.key_manager,
            data=approved.query.calldata,
        ),
    )


def _row_of(approved: _Approved, slot: _Slot, signed: SignedTransaction) -> dict[str, Any]:
    """Return the call and the signed bytes as `relay_store_calls` takes them."""
    request, approval = approved.request, approved.approval
    return {
        "user_id": request.caller.user_id,
        "profile": request.caller.profile_address,
        "key_manager": request.call.key_manager,
        "controller": request.identity.controller,
        "digest": request.identity.digest,
        "generation": approved.rows.generation,
        "channel": request.call.channel,
        "relay_nonce": request.call.relay_nonce,
        "validity": request.call.validity,
        "payload": request.call.payload.hex(),
        "signature": request.call.signature.hex(),
        "is_follower": request.call.relay_nonce > approval.chain_nonce,
        "relayer_id": slot.relayer_id,
        "account_nonce": slot.account_nonce,
        "hold_id": slot.hold_id,
        "transaction_hash": signed.transaction_hash,
        "raw": signed.raw.hex(),
        "gas_limit": approval.gas.limit,
        "max_fee_wei": approval.fees.max_fee_per_gas_wei,
        "max_tip_wei": approval.fees.max_priority_fee_per_gas_wei,
        "expected_cost": cost_in_credits(
            gas=approval.gas.expected,
            price_wei=approval.fees.expected_price_wei,
            credit_wei=settings.CREDIT_WEI,
        ),
        "credits_before": slot.balance,
        "request_id": approved.request_id,
        "accepted_at": request.now.isoformat(),
    }


def _hash_or_refusal(approved: _Approved, slot: _Slot) -> str | Exception:
    call = approved.request.call
    number = int(slot.number or 0)
    match slot.outcome:
        case "repeated":
            return _hash_of_repeat(approved, slot)
        case "insufficient":
            fees = approved.approval.fees
            required = cost_in_credits(
                gas=approved.gas_limit,
                price_wei=fees.max_fee_per_gas_wei,
                credit_wei=settings.CREDIT_WEI,
            )
            return InsufficientCredits(
                required=required, available=number, debt_limit=approved.rows.debt_limit
            )
        case "nonce-taken":
            return RelayNonceTaken(nonce=call.relay_nonce)
        case "nonce-gap":
            return RelayNonceGap(
                f"Nonce {number} of channel {call.channel} has no living call here.",
                expectedNonce=str(number),
            )
        case "channel-full":
            return ChannelBusy(
                f"{settings.RELAY_MAX_FOLLOWERS} calls of channel {call.channel} wait already.",
                retry_after=get_chain().block_seconds,
                maximumFollowers=settings.RELAY_MAX_FOLLOWERS,
            )
        case "share-used":
            return RelayShareUsed(
                f"{number} calls of the profile wait to be mined.",
                retry_after=seconds_until_next_block(),
                maximum=number,
            )
        case "channel-busy":
            return RelayersBusy(
                "The relayer of this channel is full. Repeat the call.",
                retry_after=seconds_until_next_block(),
            )
        case "relayers-busy":
            return RelayersBusy(
                "Every relayer is full. Repeat the call.", retry_after=seconds_until_next_block()
            )
    return RuntimeError(f"relay_take_slots answered {slot.outcome}")


def _hash_of_repeat(approved: _Approved, slot: _Slot) -> str | Exception:
    if slot.user_id != approved.request.caller.user_id:
        return KeyConflict(key=approved.hold_key)
    if slot.transaction_hash is None:
        return RuntimeError("a hold of the relay has no relay transaction")
    return slot.transaction_hash
