"""
Prepare a relay call: return everything that its controller needs to sign it, and its cost.

The call is not signed yet, so the node tries its parts, as for followers. The checks are those that accept calls; they
find the reasons for which this call would be refused, and their writes are rolled back.
"""

from dataclasses import dataclass
from datetime import datetime
from types import TracebackType
from typing import NamedTuple

from django.conf import settings

from gateway.chain.client import get_chain_client
from gateway.chain.config import get_chain
from gateway.chain.confirmation import confirmed, is_final
from gateway.chain.contracts import ACCEPT_OWNERSHIP, TRANSFER_OWNERSHIP, refusal_from_revert
from gateway.chain.errors import CallReverted
from gateway.chain.fees import Fees
from gateway.chain.lsp25 import RelayCall
from gateway.chain.signing import get_signer
from gateway.chain.types import RelayQuery
from gateway.common.errors import DomainError, InvalidRequest
from relay.errors import KeyManagerNotFound, RelayPaused, SignerNotController
from relay.models import Quote
from relay.pricing import credits_of
from relay.queries.calls import CallKey, Identity, controller_of_session, next_relay_nonce, rows_of_calls
from relay.services.accepting import (
    acceptance,
    consent,
    gas_limits,
    limits,
    preflight,
    quotes,
    submission,
    together,
)
from relay.services.accepting.calls import Approval, Caller, Gas, Step, SubmittedCall
from relay.services.accepting.quotes import Offer
from sponsors.queries import offers_for
from sponsors.services.paying import SponsorChoice, Sponsorship

# How long a call is valid if its draft has no validity. A signed call without an end could be relayed years later.
VALID_SECONDS = 3600


@dataclass(frozen=True, slots=True)
class Draft:
    """
    The call that the profile should execute.

    If it names no controller, the session's controller will sign it. Without a validity, it is valid for
    `VALID_SECONDS`.
    """

    payload: bytes
    channel: int = 0
    validity: int | None = None
    controller: str | None = None
    wants_quote: bool = True
    sponsor: SponsorChoice | None = None


@dataclass(frozen=True, slots=True)
class PreparedCall:
    """
    A relay call that is complete except for its signature by `identity.controller` over `identity.digest`.

    Costs are in credits, None if the call cannot be executed. `refusals` has the reasons for which it would be refused
    now. `quote_refusal` is the reason why there is no quote; it is None if the caller wants no quote or the call would
    be refused.
    """

    call: RelayCall
    identity: Identity
    refusals: tuple[DomainError, ...]
    gas_limit: int | None = None
    expected_cost: int | None = None
    highest_cost: int | None = None
    quote: Quote | None = None
    quote_refusal: DomainError | None = None
    # The part that the named sponsor would pay, or, if the user may pay instead, why the sponsor would not.
    sponsorship: Sponsorship | None = None
    sponsor_refusal: DomainError | None = None

    @property
    def moves_profile(self) -> bool:
        """Whether the call begins to move the profile to another owner."""
        return self.call.payload.startswith(TRANSFER_OWNERSHIP)


class _Refusals(list[DomainError]):
    """A context manager that collects refusals of the call. It lets outages through: they do not concern the call."""

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        if isinstance(error, DomainError) and not error.is_outage:
            self.append(error)
            return True
        return False


def prepare(*, caller: Caller, draft: Draft, now: datetime) -> PreparedCall:
    """
    Return the call with its nonce and costs, and either the reasons for which it would be refused now or a quote.

    Raises:
        NotAuthenticated: the session or the account has ended.
        InvalidRequest: neither the draft nor the session names a controller.
        KeyManagerNotFound: the profile has no key manager.
        NodeUnavailable: no node responded.
        RelayShareUsed: other requests of the user are reading from nodes.
    """
    controller = controller_of_session(user_id=caller.user_id, session_id=caller.session_id, now=now)
    controller = draft.controller or controller
    if controller is None:
        fault = {"pointer": "/controller", "code": "required", "detail": "The token names no controller."}
        raise InvalidRequest("Name the controller that will sign.", errors=[fault])
    chosen = controller
    terms = confirmed(
        lambda: _assess(_call_of(caller, draft, chosen, now)),
        refuses=lambda terms: any(map(is_final, terms.refusals)),
    )
    return _completed(terms, wants_quote=draft.wants_quote)


def _call_of(caller: Caller, draft: Draft, controller: str, now: datetime) -> SubmittedCall:
    """Return the call with the nonce and the validity to sign, and the state of its contracts."""
    query = _query(caller, draft, controller)
    with limits.share_of_nodes(caller.user_id):
        (state,) = get_chain_client().read_relay_states([query])
    if state.relay_nonce is None:
        raise KeyManagerNotFound(f"{query.key_manager} does not answer getNonce of LSP-25.")
    nonce = next_relay_nonce(
        key_manager=query.key_manager, controller=controller, chain_nonce=state.relay_nonce
    )
    validity = draft.validity
    if validity is None:
        validity = max(int(now.timestamp()), state.head.timestamp) + VALID_SECONDS
    call = RelayCall(query.key_manager, draft.payload, b"", nonce, validity)
    identity = Identity("0x" + call.digest(get_chain().id).hex(), controller)
    prepared = SubmittedCall(caller, call, identity, now, sponsor=draft.sponsor)
    prepared.query, prepared.state = query, state
    return prepared


def _query(caller: Caller, draft: Draft, controller: str) -> RelayQuery:
    return RelayQuery(
        profile=caller.profile_address,
        key_manager=_key_manager_of(caller.profile_address, draft.payload),
        controller=controller,
        channel=draft.channel,
        sender=get_signer().addresses()[0],
        # The node cannot execute a call without its signature, so the state is only read.
        calldata=b"",
        gas_limit=None,
        gas_cap=settings.RELAY_MAX_GAS,
    )


def _key_manager_of(profile: str, payload: bytes) -> str:
    """Return the profile's owner, or the pending owner for `acceptOwnership()`, which only that owner can call."""
    pending = None
    if payload == ACCEPT_OWNERSHIP:
        pending = get_chain_client().read_pending_owner(profile=profile)
    return pending or preflight.owner_of(profile=profile)


class _Terms(NamedTuple):
    """A call, the reasons for which the chain would refuse it, and what was found before the first of them."""

    call: SubmittedCall
    refusals: _Refusals
    gas: Gas | None
    fees: Fees | None
    is_trusted: bool | None


def _assess(call: SubmittedCall) -> _Terms:
    """Check the call as it stands on the chain."""
    caller, query, state = call.caller, call.query, call.state
    key = CallKey(call.identity, query.key_manager, caller.user_id, caller.session_id, call.now)
    (call.rows,) = rows_of_calls([key])
    refusals = _Refusals()
    with refusals:
        preflight.check_chain()
    if consent.is_needed():
        consent.require(call)
    if call.rows.is_paused:
        refusals.append(RelayPaused())
    with refusals:
        limits.check_cancelled_calls(rows=call.rows, now=call.now)
    with refusals:
        # By the service's time alone and then by both, as for a signed call, so that the reason is the same.
        preflight.check_validity(call=call.signed, now=int(call.now.timestamp()))
        preflight.check_validity(call=call.signed, now=int(call.now.timestamp()), head=state.head)
    is_trusted, fees, gas = None, None, None
    with refusals:
        is_trusted = preflight.check_ownership(call)
    with refusals:
        if state.permissions == 0:
            raise SignerNotController(
                f"{query.controller} has no permissions on {query.profile}.", recovered=query.controller
            )
        preflight.check_relay_permission(call)
        # The node must not execute a contract that is not the profile's key manager.
        if is_trusted is not None:
            gas = _gas_of(call, maximum=preflight.maximum_gas(is_trusted=is_trusted, head=state.head))
    with refusals:
        fees = preflight.fees_of(call)
    return _Terms(call, refusals, gas, fees, is_trusted)


def _completed(terms: _Terms, *, wants_quote: bool) -> PreparedCall:
    """Return the call with its cost, and the reasons for which it would be refused, or a quote if there are none."""
    call, refusals, gas, fees, is_trusted = terms
    if gas is None or fees is None or is_trusted is None:
        return PreparedCall(call.signed, call.identity, tuple(refusals), gas and gas.limit)
    caller, state = call.caller, call.state
    call.approval = Approval(gas, fees, state.relay_nonce or 0, is_trusted)
    with refusals:
        _try_slot(call)
    quote = None
    if wants_quote and not refusals:
        offer = Offer(
            caller.user_id,
            call.identity,
            call.approval,
            state.head.base_fee_wei,
            call.data_bytes,
            call.rows.credit_wei,
            call.sponsorship.version_id if call.sponsorship else None,
        )
        quote = quotes.issue(offer, now=call.now)
    return PreparedCall(
        call.signed,
        call.identity,
        tuple(refusals),
        gas.limit,
        expected_cost=credits_of(
            fees.expected_cost_wei(gas=gas.expected, data_bytes=call.data_bytes),
            credit_wei=call.rows.credit_wei,
        ),
        highest_cost=credits_of(call.worst_cost_wei, credit_wei=call.rows.credit_wei),
        quote=quote if isinstance(quote, Quote) else None,
        quote_refusal=quote if isinstance(quote, DomainError) else None,
        sponsorship=call.sponsorship,
        sponsor_refusal=call.sponsor_refusal,
    )


def _try_slot(call: SubmittedCall) -> None:
    """
    Choose who would pay for the call, and take its slot without keeping it.

    Raises:
        DomainError: the call would be refused now.
    """
    try:
        for step in submission.take_slot(call):
            if step is Step.OFFER:
                (call.offer,) = offers_for([call.bill.wanted])
            elif step is Step.ACCEPTANCE:
                acceptance.try_slot(call)
    finally:
        together.record_sponsor_refusals([call])


def _gas_of(call: SubmittedCall, *, maximum: int) -> Gas:
    try:
        gas = gas_limits.before_signing(call, maximum=maximum)
    except CallReverted as reverted:
        refusal = refusal_from_revert(reverted.data)
        raise preflight.explained(refusal, call, maximum=maximum, is_next=False) from reverted
    preflight.check_gas(gas_limit=gas.limit, maximum=maximum)
    return gas
