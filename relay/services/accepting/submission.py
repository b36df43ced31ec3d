"""
Accept a relay call: hold its credits, sign it, store it, and only then return its hash.

Concurrent calls of a process's threads form a batch; one call is a batch of one. One statement reads their rows. One
node round trip reads the chain and executes exactly the transactions that would be signed. One transaction accepts the
approved calls (`relay.services.accepting.acceptance`). A call that needs another node request returns to its own
thread, so that the others need not wait, and joins the next batch. So does a call through a key manager that no stored
call verifies as the profile's: the thread first reads the contracts, because the node must execute only the profile's
own key manager. After a profile's contracts have returned too much data, its calls are read outside batches for some
minutes. A sender with many refused calls may send one call a second.
"""

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from http import HTTPStatus
from typing import Literal
from uuid import UUID

from django.conf import settings

from gateway.chain.client import get_chain_client
from gateway.chain.config import get_chain
from gateway.chain.contracts import encode_execute_relay_call
from gateway.chain.errors import AnswerTooLarge, NodeUnavailable, no_answer
from gateway.chain.lsp25 import RelayCall
from gateway.chain.signatures import recover_signers
from gateway.chain.signing import Signer, get_signer
from gateway.chain.types import RelayQuery, RelayState
from gateway.common import metrics
from gateway.common.errors import DomainError
from gateway.common.logging import request_id
from gateway.web import tracing
from relay.errors import RelayPaused
from relay.queries.calls import CallKey, CallRows, Identity, active_transaction, rows_of_calls
from relay.services.accepting import gas_limits, limits, preflight, quotes, sponsoring
from relay.services.accepting.acceptance import LinedUpCall, accept_alone, accept_together, require_unlocked
from relay.services.accepting.batching import Batcher, Seal, WaitLimits
from relay.services.accepting.calls import ApprovedCall, Caller, CallRequest, SponsorChoice
from users.queries import require_active_state

# An oversized answer forces the process to read the rest of the batch again, so the profile's calls are read outside
# batches for this time.
_ALONE_SECONDS = 300.0
_MOST_ALONE = 10_000
_alone_until: dict[str, float] = {}
_alone_lock = threading.Lock()
refused_calls = limits.RefusedCalls()
# The outcome of a request, for metrics: `refused` is the caller's fault, `unavailable` that of a dependency.
Outcome = Literal["accepted", "refused", "unavailable", "failed"]


def execute(
    *,
    caller: Caller,
    call: RelayCall,
    now: datetime,
    quote_id: UUID | None = None,
    sponsor: SponsorChoice | None = None,
) -> str:
    """
    Relay the call for the caller's profile and return the transaction's hash.

    A repeat of a call that is in progress or executed returns the same hash. A call that
    ended as `Failed`, `Cancelled` or `Expired` is tried again; for callers without a token
    only as often as `limits.check_failures` allows. With a quote, the call costs at most the quote, and who
    pays is as quoted; without one, the sponsor's policies decide.

    Raises:
        NotAuthenticated: the session or the account has ended.
        DomainError: the call was refused; nothing is stored, held or sent.
    """
    started = time.perf_counter()
    outcome: Outcome = "failed"
    try:
        transaction_hash = _execute(caller, call, now, quote_id, sponsor)
        outcome = "accepted"
    except DomainError as error:
        outcome = "unavailable" if error.status >= HTTPStatus.INTERNAL_SERVER_ERROR else "refused"
        raise
    finally:
        metrics.ACCEPTANCE.observe(time.perf_counter() - started, outcome)
    return transaction_hash


def _execute(
    caller: Caller, call: RelayCall, now: datetime, quote_id: UUID | None, sponsor: SponsorChoice | None
) -> str:
    call, identity = identify(call=call)
    trace = tracing.identified(identity.digest)
    item: CallRequest | ApprovedCall
    item = CallRequest(caller, call, identity, now, quote_id, request_id() or "", trace, sponsor=sponsor)
    try:
        while not isinstance(outcome := relay_batched(item), str):
            if isinstance(outcome, LinedUpCall):
                outcome = accept_alone(outcome)
                if isinstance(outcome, str):
                    break
            item = _read_alone(outcome)
    except DomainError:
        # A concurrent equal request may have been accepted first, and may have taken this one's nonce or credits.
        accepted = active_transaction(user_id=caller.user_id, identity=identity)
        if accepted is None:
            raise
        return accepted.transaction_hash
    if trace is not None:
        trace.passed("hold, signature and rows" if trace.span.children else "rows and chain", is_last=True)
    return outcome


def identify(*, call: RelayCall) -> tuple[RelayCall, Identity]:
    """
    Return the call with a normalised signature, and its identity.

    Raises:
        UnusableSignature: no address can be recovered from the signature.
    """
    chain_id = get_chain().id
    digest = call.digest(chain_id)
    signature, (controller,) = recover_signers(call.signature, digest, chain_id=chain_id)
    normalised = RelayCall(call.key_manager, call.payload, signature, call.relay_nonce, call.validity)
    return normalised, Identity("0x" + digest.hex(), controller)


@dataclass(frozen=True, slots=True)
class ReadCall:
    """A request, with its rows and the state of the chain."""

    request: CallRequest
    rows: CallRows
    query: RelayQuery
    state: RelayState


@dataclass(frozen=True, slots=True)
class UnreadCall:
    """A request with its rows, whose contracts are read in a separate node request, not in that of the batch."""

    request: CallRequest
    rows: CallRows
    query: RelayQuery


class UnknownPair(UnreadCall):
    """A request whose key manager may be any contract, so it must be verified before the node executes it."""

    __slots__ = ()


# The progress of a call: its hash, an item for its own thread and then the next batch, or its error.
_Unfinished = UnreadCall | ReadCall | ApprovedCall
_Stage = str | _Unfinished | LinedUpCall | Exception


def relay_together(items: Sequence[CallRequest | ApprovedCall], seal: Seal) -> list[_Stage]:
    """
    Advance each call: to its hash, to its error, or to an item for the next batch.

    A `ReadCall` joins a later batch after another node request, and an `UnknownPair` after its contracts were read. An
    approved call joins one when an earlier call of its channel was stored, on which its checks depend, or when its
    sponsor's question has an answer. A `LinedUpCall` is accepted by its own thread.
    """
    # Items that return from their own thread go first.
    outcomes: dict[int, _Stage] = {
        place: item for place, item in enumerate(items) if isinstance(item, ApprovedCall)
    }
    requests = {place: item for place, item in enumerate(items) if isinstance(item, CallRequest)}
    signer = get_signer()
    if requests:
        outcomes |= zip(requests, _read(list(requests.values()), signer), strict=True)
    remaining = seal()
    approved = {
        place: outcome
        for place, outcome in outcomes.items()
        if isinstance(outcome, ApprovedCall) and place in remaining
    }
    if approved:
        outcomes |= zip(approved, accept_together(list(approved.values()), signer), strict=True)
    return [outcomes[place] for place in range(len(items))]


relay_batched: Batcher[CallRequest | ApprovedCall, str | _Unfinished | LinedUpCall] = Batcher(
    relay_together,
    # A batch of this size takes the node and PostgreSQL a few milliseconds.
    most=32,
    # The callers of the last batch return one after the other. With 8 clients, waiting up to 8 ms instead of 3 ms makes
    # batches larger, and calls a tenth cheaper and faster. Calls that arrive independently form small batches; after a
    # small batch, no run waits.
    pause_seconds=0.003,
    longest_wait_seconds=0.008,
    # Requests wait here for the chain; a node that hangs must not occupy all threads.
    wait_limits=WaitLimits(seconds=0.8, callers=max(1, settings.WEB_THREADS // 4), refusal=no_answer),
)


def _read(requests: Sequence[CallRequest], signer: Signer) -> list[_Stage]:
    """Read the rows of each request, then the chain for the calls that the rows neither repeat nor refuse."""
    keys = [
        CallKey(
            one.identity,
            one.call.key_manager,
            one.caller.user_id,
            one.caller.session_id,
            one.now,
            one.quote_id,
        )
        for one in requests
    ]
    outcomes: dict[int, _Stage] = {}
    queried: dict[int, tuple[CallRequest, CallRows, RelayQuery]] = {}
    for place, (request, rows) in enumerate(zip(requests, rows_of_calls(keys), strict=True)):
        try:
            if (transaction_hash := _check_rows(request, rows)) is not None:
                outcomes[place] = transaction_hash
                continue
            refused_calls.check(_sender_of(request))
            query = _query_of(request, rows, signer)
            if not (rows.is_pair_known or request.is_pair_verified):
                outcomes[place] = UnknownPair(request, rows, query)
            elif _alone_until.get(query.profile, 0.0) > time.monotonic():
                outcomes[place] = UnreadCall(request, rows, query)
            else:
                queried[place] = request, rows, query
        except DomainError as refusal:
            outcomes[place] = refusal
    if queried:
        try:
            states = get_chain_client().read_relay_states([query for _, _, query in queried.values()])
        except NodeUnavailable as away:
            outcomes |= dict.fromkeys(queried, away)
        else:
            for (place, (request, rows, query)), state in zip(queried.items(), states, strict=True):
                outcomes[place] = _approve_or_refuse(ReadCall(request, rows, query, state))
    return [outcomes[place] for place in range(len(requests))]


def _check_rows(request: CallRequest, rows: CallRows) -> str | None:
    """Return the hash of an equal call that was accepted before; raise if the rows refuse the call."""
    require_active_state(rows.session_state)
    if rows.transaction_hash is not None:
        return rows.transaction_hash
    if not request.caller.is_signed_in:
        limits.check_failures(rows=rows)
    if rows.is_paused:
        raise RelayPaused
    require_unlocked(request.caller.user_id)
    limits.check_cancelled_calls(rows=rows, now=request.now)
    preflight.check_validity(call=request.call, now=int(request.now.timestamp()))
    if request.quote_id is not None:
        quotes.check(rows.quote, identity=request.identity, now=request.now)
    return None


def _query_of(request: CallRequest, rows: CallRows, signer: Signer) -> RelayQuery:
    call = request.call
    gas_limit = gas_limits.learned_limit(profile=request.caller.profile_address, call=call)
    return RelayQuery(
        profile=request.caller.profile_address,
        key_manager=call.key_manager,
        controller=request.identity.controller,
        channel=call.channel,
        sender=signer.addresses()[0],
        calldata=encode_execute_relay_call(
            signature=call.signature, nonce=call.relay_nonce, validity=call.validity, payload=call.payload
        ),
        gas_limit=rows.quote.gas_limit if rows.quote else gas_limit,
        gas_cap=settings.RELAY_MAX_GAS,
    )


def _read_alone(unfinished: _Unfinished) -> CallRequest | ApprovedCall:
    """Return the item for the next batch, after this thread has made the requests that only this item needs."""
    if isinstance(unfinished, ApprovedCall):
        return sponsoring.answered(unfinished)
    if isinstance(unfinished, UnknownPair):
        return _verify_pair(unfinished)
    if isinstance(unfinished, UnreadCall):
        (state,) = get_chain_client().read_relay_states([unfinished.query])
        unfinished = ReadCall(unfinished.request, unfinished.rows, unfinished.query, state)
        _trace_reads(unfinished)
    return _ask_again(unfinished)


def _verify_pair(pair: UnknownPair) -> CallRequest:
    """Return the request once the chain confirms its key manager as the profile's, without executing the call."""
    query = replace(pair.query, calldata=b"")
    (state,) = get_chain_client().read_relay_states([query])
    with _refusals_counted(pair.request):
        preflight.check_ownership(
            query=query,
            state=state,
            trusted_codes=pair.rows.trusted_codes,
            payload=pair.request.call.payload,
        )
    return replace(pair.request, is_pair_verified=True)


def _approve_or_refuse(call: ReadCall) -> ReadCall | ApprovedCall | Exception:
    """Return the approved call or its error; the unchanged `call` if it needs another node request."""
    _trace_reads(call)
    try:
        return _approved(call, may_ask=False) or call
    except DomainError as refusal:
        return refusal


def _trace_reads(call: ReadCall) -> None:
    if (trace := call.request.trace) is not None:
        trace.passed("rows and chain")


def _ask_again(call: ReadCall) -> ApprovedCall:
    approved = _approved(call, may_ask=True)
    if approved is None:
        raise RuntimeError("the node was asked, and nothing is known of the call")
    return approved


def _approved(call: ReadCall, *, may_ask: bool) -> ApprovedCall | None:
    quote = call.rows.quote
    with _refusals_counted(call.request):
        approval = preflight.approve(
            call=call.request.call,
            query=call.query,
            state=call.state,
            trusted_codes=call.rows.trusted_codes,
            may_ask=may_ask,
        )
    if approval is not None and quote is not None:
        # If an inner call fails at the lower limit, the quote must cover the whole limit.
        approval = quotes.within(quote, approval, must_fit=call.state.trial.agrees is False)
    return None if approval is None else ApprovedCall(call.request, call.rows, call.query, approval)


@contextmanager
def _refusals_counted(request: CallRequest) -> Iterator[None]:
    """Count the call for its sender if the chain refuses it."""
    try:
        yield
    except DomainError as refusal:
        if not refusal.is_outage:
            refused_calls.add(_sender_of(request))
        if isinstance(refusal, AnswerTooLarge):
            _read_alone_from_now_on(request.caller.profile_address)
        raise


def _sender_of(request: CallRequest) -> str:
    """Return the key of the refusal count. Without a token, any sender can name a profile, so it adds the signer."""
    profile = request.caller.profile_address
    return profile if request.caller.is_signed_in else f"{profile} {request.identity.controller}"


def _read_alone_from_now_on(profile: str) -> None:
    """Keep the profile's calls out of the batches of this process for some minutes."""
    now = time.monotonic()
    with _alone_lock:
        if len(_alone_until) >= _MOST_ALONE:
            for other in [profile for profile, until in _alone_until.items() if until <= now]:
                del _alone_until[other]
        if len(_alone_until) < _MOST_ALONE:
            _alone_until[profile] = now + _ALONE_SECONDS
