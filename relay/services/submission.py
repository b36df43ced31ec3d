"""
Accept a relay call: hold its credits, sign it, store it, and only then answer.

A call takes two steps, each together with the calls that other threads bring at the same moment; one call is a
batch of one. Looking: one statement reads what the rows say, and one trip to the node reads the chain and executes
the very transaction that would be signed. Accepting: `relay.services.acceptance`.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus
from typing import Literal
from uuid import UUID

from django.conf import settings

from gateway.chain.client import get_chain_client
from gateway.chain.config import get_chain
from gateway.chain.contracts import encode_execute_relay_call
from gateway.chain.errors import no_answer
from gateway.chain.lsp25 import RelayCall, relay_digest
from gateway.chain.signatures import normalise_signature, recover_address
from gateway.chain.signing import get_signer
from gateway.chain.types import RelayQuery, RelayState
from gateway.common import durations, tracing
from gateway.common.batching import Patience, Together
from gateway.common.errors import DomainError
from gateway.common.logging import request_id
from relay import queries
from relay.errors import RelayPaused
from relay.queries import CallKey, CallRows, Identity
from relay.services import gas_limits, limits, preflight, quotes
from relay.services.acceptance import (
    MOST_TOGETHER,
    ROUND,
    ApprovedCall,
    Caller,
    CallRequest,
    accept,
    batch_wait_seconds,
)
from users.queries import require_active_state

# How a request ends: `refused` is the caller's doing, `unavailable` that of what the service depends on.
Outcome = Literal["accepted", "refused", "unavailable", "failed"]


def execute(*, caller: Caller, call: RelayCall, now: datetime, quote_id: UUID | None = None) -> str:
    """
    Relay the call for the caller's profile and return the transaction's hash.

    A repeat of a call that is in progress or executed returns the same hash. A call that
    ended as `Failed`, `Cancelled` or `Expired` is tried anew; for callers without a token
    only as often as `limits.check_failures` allows. With a quote the call costs no more than that.

    Raises:
        NotAuthenticated: the session or the account has ended.
        DomainError: the call was refused; nothing is stored, held or sent.
    """
    started = time.perf_counter()
    outcome: Outcome = "failed"
    try:
        transaction_hash = _execute(caller, call, now, quote_id)
        outcome = "accepted"
    except DomainError as error:
        outcome = "unavailable" if error.status >= HTTPStatus.INTERNAL_SERVER_ERROR else "refused"
        raise
    finally:
        durations.ACCEPTANCE.observe(time.perf_counter() - started, outcome)
    return transaction_hash


def _execute(caller: Caller, call: RelayCall, now: datetime, quote_id: UUID | None) -> str:
    call, identity = identify(call=call)
    tracing.identified(identity.digest)
    request = CallRequest(caller, call, identity, now, quote_id)
    try:
        with ROUND.caller(request):
            view = _look(request)
            tracing.passed("rows and chain", is_last=view.rows.transaction_hash is not None)
            if view.rows.transaction_hash is not None:
                return view.rows.transaction_hash
            approved = _approved(request, view)
            ROUND.came_to_second(request)
            transaction_hash = accept(approved)
            tracing.passed("hold, signature and rows", is_last=True)
            return transaction_hash
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
class _View:
    """What the rows and the chain say of a request; without a query where the rows have the answer already."""

    rows: CallRows
    query: RelayQuery | None = None
    state: RelayState | None = None


def _look_together(requests: Sequence[CallRequest]) -> list[_View | Exception]:
    """Read what the rows say of each request, and the chain for those that the rows neither answer nor refuse."""
    keys = [
        CallKey(
            request.identity, request.caller.user_id, request.caller.session_id, request.now, request.quote_id
        )
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
            queried.append((place, rows, _query_of(request, rows)))
    if queried:
        states = get_chain_client().read_relay_states([query for _, _, query in queried])
        for (place, rows, query), state in zip(queried, states, strict=True):
            views[place] = _View(rows, query, state)
        ROUND.took_first([requests[place] for place, _, _ in queried])
    return views


# Requests wait here for the chain: a node that hangs must not keep all threads.
_look = Together(
    _look_together,
    most=MOST_TOGETHER,
    batch_wait_seconds=batch_wait_seconds,
    before_run=ROUND.before_first,
    patience=Patience(seconds=0.8, callers=max(1, settings.WEB_THREADS // 4), refusal=no_answer),
)


def _check_rows(request: CallRequest, rows: CallRows) -> None:
    require_active_state(rows.session_state)
    if rows.transaction_hash is not None:
        return
    if not request.caller.is_signed_in:
        limits.check_failures(rows=rows)
    if rows.is_paused:
        raise RelayPaused
    limits.check_cancelled_calls(rows=rows, now=request.now)
    preflight.check_validity(call=request.call, now=int(request.now.timestamp()))
    if request.quote_id is not None:
        quotes.check(rows.quote, identity=request.identity, now=request.now)


def _query_of(request: CallRequest, rows: CallRows) -> RelayQuery:
    call = request.call
    gas_limit = gas_limits.learned_limit(profile=request.caller.profile_address, call=call)
    return RelayQuery(
        profile=request.caller.profile_address,
        key_manager=call.key_manager,
        controller=request.identity.controller,
        channel=call.channel,
        sender=get_signer().addresses()[0],
        calldata=encode_execute_relay_call(
            signature=call.signature, nonce=call.relay_nonce, validity=call.validity, payload=call.payload
        ),
        gas_limit=rows.quote.gas_limit if rows.quote else gas_limit,
        gas_cap=settings.RELAY_MAX_GAS,
    )


def _approved(request: CallRequest, view: _View) -> ApprovedCall:
    if view.query is None or view.state is None:
        raise RuntimeError("the rows answered no hash, so the chain was read")
    approval = preflight.approve(
        call=request.call, query=view.query, state=view.state, trusted_codes=view.rows.trusted_codes
    )
    if view.rows.quote is not None:
        approval = quotes.within(view.rows.quote, approval)
    return ApprovedCall(request, view.rows, view.query, approval, request_id() or "")
