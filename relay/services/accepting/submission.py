"""
From a submitted relay call to its hash. `story` has every step of one call, in order; read it first.

The story yields a `Step` wherever it waits for something outside: rows, the chain, a transaction. `together` executes
each step for all calls of a batch that wait for it, and then resumes their stories. A call that arrives meanwhile joins
the next batch. After `Step.ALONE`, the call's own thread resumes the story once the batch is done, so that other calls
need not wait for a step that only this call needs.

A refusal is a `DomainError`, raised where it is found; nothing of the call is stored, held or sent then. An accepted
call is stored and not sent: its row wakes the relay worker, which sends it.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from http import HTTPStatus
from typing import Literal
from uuid import UUID

from django.conf import settings

from credits.services.entries import open_account
from gateway.chain.client import get_chain_client
from gateway.chain.config import get_chain
from gateway.chain.confirmation import confirmed, needs_witness
from gateway.chain.contracts import encode_execute_relay_call
from gateway.chain.errors import ResultTooLarge
from gateway.chain.fees import FeesTooHigh
from gateway.chain.lsp25 import RelayCall
from gateway.chain.signatures import recover_signers
from gateway.chain.signing import get_signer
from gateway.chain.types import RelayQuery
from gateway.common import metrics
from gateway.common.errors import DomainError, NotAuthenticated
from gateway.common.logging import request_id
from gateway.web import process, tracing
from relay.errors import ChannelBusy, RelayPaused, RelayShareUsed
from relay.queries.calls import Identity, active_transaction
from relay.services.accepting import (
    acceptance,
    consent,
    gas_limits,
    limits,
    preflight,
    quotes,
    refusals,
    together,
    unsigned,
)
from relay.services.accepting.calls import Approval, Caller, Step, Steps, Story, SubmittedCall
from sponsors.errors import SponsorBusy, SponsorFrozen
from sponsors.queries import default_sponsor
from sponsors.services.paying import SponsorChoice, Sponsorship, payer_of, response_to
from users.queries import require_active_state

# The outcome of a request, for metrics: `refused` is the caller's fault, `unavailable` that of a dependency.
Outcome = Literal["accepted", "refused", "unavailable", "failed"]
# 503 because of the caller's own calls in flight.
_OWN_CROWD = (ChannelBusy, RelayShareUsed)
refused_calls = limits.RefusedCalls()
_oversized = limits.OversizedProfiles()
# The sponsor decides again when other calls have used up a limit in between, or a policy has changed.
_MOST_DECISIONS = 5


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
        call, identity = identify(call=call)
        trace = tracing.identified(identity.digest)
        submitted = SubmittedCall(caller, call, identity, now, quote_id, sponsor, request_id() or "", trace)
        transaction_hash = _accepted(submitted)
        outcome = "accepted"
    except DomainError as error:
        is_own = error.status < HTTPStatus.INTERNAL_SERVER_ERROR or isinstance(error, _OWN_CROWD)
        outcome = "refused" if is_own else "unavailable"
        raise
    finally:
        metrics.ACCEPTANCE.observe(time.perf_counter() - started, outcome)
        process.recent_calls.add(is_served=outcome in ("accepted", "refused"))
    if trace is not None:
        trace.passed("hold, signature and rows" if trace.span.children else "rows and chain", is_last=True)
    return transaction_hash


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


def _accepted(call: SubmittedCall) -> str:
    """Run the story of the call, together with other threads; return the hash, also if an equal request was faster."""
    try:
        return together.run(call, story(call))
    except NotAuthenticated:
        raise
    except DomainError:
        # A concurrent equal request may have been accepted first, and may have taken this one's nonce or credits.
        accepted = active_transaction(user_id=call.caller.user_id, identity=call.identity)
        if accepted is None:
            raise
        return accepted.transaction_hash


def story(call: SubmittedCall) -> Story:
    """
    Take a call to its hash: rows, chain, decision, payer, hold and account nonce, signature, storage.

    Each `yield` is a step that the caller of this generator executes. It fills the fields of `call` that `Step` names.
    """
    yield Step.ROWS
    if (accepted_before := _check_rows(call)) is not None:
        return accepted_before

    if consent.is_needed():
        yield Step.ALONE
        with _refusals_counted(call):
            consent.require(call)
    call.query = _query_of(call)
    if not call.rows.is_pair_known:
        # The key manager may be any contract. The node must not execute it before it is known to be the profile's.
        yield Step.ALONE
        with limits.share_of_nodes(call.caller.user_id):
            _verify_pair(call)
    if _oversized.has((get_chain().id, call.query.profile)):
        yield Step.ALONE
        with limits.share_of_nodes(call.caller.user_id):
            (call.state,) = get_chain_client().read_relay_states([call.query])
    else:
        yield Step.CHAIN
    if call.trace is not None:
        call.trace.passed("rows and chain")

    if not _decide(call):
        yield Step.ALONE
        with limits.share_of_nodes(call.caller.user_id):
            _decide_alone(call)

    yield from take_slot(call)
    if call.slot.outcome == "repeated":
        return (yield from _hash_of_repeat(call))
    if get_signer().is_remote:
        yield Step.SIGNATURE
    return str(call.columns["transaction_hash"])


def take_slot(call: SubmittedCall) -> Steps:
    """
    Choose who pays for the call, and take its hold, relayer and account nonce.

    Afterwards `call.slot` is taken, or that of an equal call.

    Raises:
        CallTooExpensive: it may cost more than the operator allows on this chain.
        DomainError: the payer or the slot was refused; nothing of the call is left.
    """
    preflight.check_cost(call)
    has_completed_another = False
    while True:
        yield from _choose_payer(call)
        yield Step.ACCEPTANCE
        if call.ticket is not None:
            # Another transaction holds a lock. The call waits for it in line, outside the steps of the others.
            yield Step.ALONE
            acceptance.accept_in_line(call)
        outcome = call.slot.outcome
        if outcome in {"taken", "repeated"}:
            return
        if outcome == "no-account":
            # Another transaction may be opening it, for which only this call needs to wait.
            yield Step.ALONE
            open_account(user_id=call.caller.user_id)
        elif outcome == "insufficient":
            yield Step.ALONE
            _ask_default_sponsor(call)
        elif outcome.startswith("sponsor-"):
            # The policies or their usage have changed since the sponsor's decision, which is made again.
            call.sponsorship = None
        elif outcome == "nonce-unsigned" and not has_completed_another:
            yield Step.ALONE
            has_completed_another = True
            unsigned.complete_on_nonce_of(call)
            if call.slot.outcome == "repeated":
                return
        else:
            raise refusals.refusal_of(call)


def _hash_of_repeat(call: SubmittedCall) -> Story:
    """Return the hash of the equal call that has taken the slot; sign that call first if it is still unsigned."""
    refusals.check_repeat(call)
    if call.slot.transaction_hash is not None:
        return call.slot.transaction_hash
    yield Step.ALONE
    return unsigned.finish_repeated(int(call.slot.hold_id or 0))


def _check_rows(call: SubmittedCall) -> str | None:
    """Return the hash of an equal call that was accepted before; raise if the rows refuse the call."""
    rows = call.rows
    require_active_state(rows.session_state)
    if rows.transaction_hash is not None:
        return rows.transaction_hash
    if not call.caller.is_signed_in:
        limits.check_failures(rows=rows)
    preflight.check_chain()
    if rows.is_paused:
        raise RelayPaused
    acceptance.require_unlocked(call.caller.user_id)
    limits.check_cancelled_calls(rows=rows, now=call.now)
    preflight.check_validity(call=call.signed, now=int(call.now.timestamp()))
    if call.quote_id is not None:
        quotes.check(rows.quote, identity=call.identity, now=call.now)
    refused_calls.check(_sender_of(call))
    return None


def _query_of(call: SubmittedCall) -> RelayQuery:
    """Return what to read from the chain, and the transaction to try: exactly the one that would be signed."""
    signed, quote = call.signed, call.rows.quote
    plan = gas_limits.plan_for(profile=call.caller.profile_address, call=signed)
    return RelayQuery(
        profile=call.caller.profile_address,
        key_manager=signed.key_manager,
        controller=call.identity.controller,
        channel=signed.channel,
        sender=get_signer().addresses()[0],
        calldata=encode_execute_relay_call(
            signature=signed.signature,
            nonce=signed.relay_nonce,
            validity=signed.validity,
            payload=signed.payload,
        ),
        gas_limit=quote.gas_limit if quote else plan.limit,
        gas_cap=settings.RELAY_MAX_GAS,
        compares=quote is not None or plan.compares,
    )


def _verify_pair(call: SubmittedCall) -> None:
    """Have the chain confirm the key manager as the profile's, without executing the call."""

    def verify() -> None:
        (call.state,) = get_chain_client().read_relay_states([replace(call.query, calldata=b"")])
        preflight.check_ownership(call)

    with _refusals_counted(call):
        confirmed(verify)


def _decide(call: SubmittedCall) -> bool:
    """
    Approve the call as the chain stands, or refuse it.

    Returns False if the nodes must be asked more, as for each call that reverts: it may lack gas, or the node is wrong.
    """
    try:
        approval = _approval_of(call, may_ask=False)
    except DomainError as refusal:
        if needs_witness(refusal):
            return False
        with _refusals_counted(call):
            raise
    if approval is None:
        return False
    call.approval = approval
    return True


def _decide_alone(call: SubmittedCall) -> None:
    """Approve or refuse the call, with as many node requests as that takes."""

    def decide() -> Approval | None:
        return _approval_of(call, may_ask=True)

    def decide_anew() -> Approval | None:
        (call.state,) = get_chain_client().read_relay_states([call.query])
        return decide()

    with _refusals_counted(call):
        approval = confirmed(decide, again=decide_anew, heard=[call.state.node])
    assert approval is not None  # noqa: S101 - for the type checker
    call.approval = approval


def _approval_of(call: SubmittedCall, *, may_ask: bool) -> Approval | None:
    """Return the terms of the call, within those of its quote; None if the node must be asked more, and may not."""
    approval = preflight.approve(call, may_ask=may_ask)
    if approval is None or call.rows.quote is None:
        return approval
    # If an inner call fails at the lower limit, the quote must cover the whole limit.
    return quotes.within(
        call.rows.quote,
        approval,
        data_bytes=call.data_bytes,
        must_fit=call.state.trial.agrees is False,
    )


def _choose_payer(call: SubmittedCall) -> Steps:
    """
    Set the sponsorship of a call that names a sponsor; without one, the user pays.

    Raises:
        DomainError: the sponsor does not pay, and the caller does not let the user pay instead.
    """
    while call.sponsorship is None and (call.sponsor is not None or call.quoted_version is not None):
        yield Step.OFFER
        try:
            if call.decisions >= _MOST_DECISIONS:
                raise SponsorBusy("Many calls change what the sponsor's policies have left.", retry_after=1)
            payer = payer_of(call.bill, call.offer, call.responses)
        except DomainError as refusal:
            _refuse_sponsor(call, refusal)
            continue
        if isinstance(payer, Sponsorship):
            call.sponsorship, call.decisions = payer, call.decisions + 1
            continue
        yield Step.ALONE
        call.responses[payer] = response_to(payer, call.bill, asked_before=len(call.responses))


def _refuse_sponsor(call: SubmittedCall, refusal: DomainError) -> None:
    """Let the user pay instead of the sponsor, or raise the reason why neither pays."""
    if call.own_refusal is not None:
        call.sponsor_refusal = call.own_refusal if call.is_welcome else None
        raise call.own_refusal
    call.sponsor_refusal = refusal
    if call.deploys_profile:
        _ask_for_welcome(call, refusal)
        return
    if call.sponsor is None or not call.sponsor.user_may_pay or call.quoted_version is not None:
        raise refusal
    call.sponsor = None


def _ask_for_welcome(call: SubmittedCall, refusal: DomainError) -> None:
    """Name the default sponsor, whose welcome policy may pay for the new profile; raise if there is none to ask."""
    slug = None if call.sponsor is None or isinstance(refusal, SponsorFrozen) else default_sponsor()
    if call.sponsor is None or slug is None:
        raise refusal
    call.own_refusal, call.sponsor_refusal, call.is_welcome = refusal, None, True
    call.sponsor = SponsorChoice(slug, voucher=call.sponsor.voucher)


def _ask_default_sponsor(call: SubmittedCall) -> None:
    """Name the operator's default sponsor for a user with too few credits; raise if there is none to ask."""
    refusal = call.own_refusal or refusals.insufficient(call)
    slug = None if call.sponsor is not None or call.quoted_version is not None else default_sponsor()
    if slug is None:
        raise refusal
    call.own_refusal, call.sponsor, call.sponsor_refusal = refusal, SponsorChoice(slug), None


@contextmanager
def _refusals_counted(call: SubmittedCall) -> Iterator[None]:
    """Count the call for its sender if the chain refuses it. A sender with many such calls may send one a second."""
    try:
        yield
    except DomainError as refusal:
        if not refusal.is_outage and not isinstance(refusal, FeesTooHigh):
            refused_calls.add(_sender_of(call))
        if isinstance(refusal, ResultTooLarge):
            _oversized.add((get_chain().id, call.caller.profile_address))
        raise


def _sender_of(call: SubmittedCall) -> str:
    """Return the key of the refusal count. Without a token, any sender can name a profile, so it adds the signer."""
    sender = f"{get_chain().id} {call.caller.profile_address}"
    return sender if call.caller.is_signed_in else f"{sender} {call.identity.controller}"
