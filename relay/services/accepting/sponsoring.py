"""
Decides which policy of a sponsor pays for a call, from the rows just before the call is accepted.

`relay_take_slots` counts the call towards the policy's limits in the statement that holds its credits. It refuses if
the usage or the policy has changed since this decision. The service then decides again, so that the response names the
current rule. Only calls that name a sponsor cost a statement. If a policy needs an answer from outside the database,
the call leaves its batch with the question, its own thread gets the answer, and the service decides again.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from credits.errors import InsufficientCredits
from gateway.chain.config import get_chain
from gateway.common.errors import DomainError
from relay.services.accepting.calls import ApprovedCall, SponsorChoice, Sponsorship
from sponsors.errors import (
    PolicyRefused,
    SponsorBusy,
    SponsorFrozen,
    SponsorUnknown,
    SponsorWithoutCredits,
    VoucherRefused,
    VoucherUsed,
)
from sponsors.queries import Offer, Wanted, default_sponsor, offers_for, voucher_state
from sponsors.rules.calls import Action, Unreadable, actions_of
from sponsors.rules.choosing import decide
from sponsors.rules.policies import Answer, Facts, Holding, Profiles, Question, sponsor_part
from sponsors.rules.vouchers import Voucher, verify
from sponsors.services import holdings, refusals, verifiers
from sponsors.services.verifiers import AskedCall

# The service decides again when other calls have used up a limit in between, or a policy has changed.
_MOST_DECISIONS = 5
_MOST_QUESTIONS = 8


def as_json(sponsorship: Sponsorship | None) -> dict[str, Any] | None:
    """Return the decision in the form that `relay_take_slots` expects."""
    if sponsorship is None:
        return None
    return {
        "version": sponsorship.version_id,
        "sponsor_credits": sponsorship.credits,
        "is_quoted": sponsorship.is_quoted,
        "voucher": sponsorship.voucher and "0x" + sponsorship.voucher.voucher_id.hex(),
        "signer": sponsorship.signer,
    }


def part_of(credits: int, sponsorship: Sponsorship | None) -> int:
    """Return the sponsor's part of a cost; 0 if no sponsor pays."""
    return sponsor_part(credits, share_percent=sponsorship.share_percent) if sponsorship else 0


def decided(calls: Sequence[ApprovedCall]) -> list[ApprovedCall | DomainError]:
    """
    Decide for each call that names a sponsor which policy pays; return the call, or the error with which to refuse it.

    A call that is returned with a question is not decided yet. If no policy pays for a call and the caller allows it,
    the user pays.
    """
    outcomes: list[ApprovedCall | DomainError] = list(calls)
    places = [place for place, call in enumerate(calls) if call.wants_sponsor]
    offers = offers_for([_wanted(calls[place]) for place in places]) if places else []
    payers = [_payers(calls[place], offer) for place, offer in zip(places, offers, strict=True)]
    for place, one in zip(places, payers, strict=True):
        outcomes[place] = one.refusal or one.call
    _count_refusals(payers, offers)
    return outcomes


def _count_refusals(payers: Sequence["Payers"], offers: Sequence[Offer | None]) -> None:
    refused = [
        (offer.slug, one.sponsor_refusal.code)
        for one, offer in zip(payers, offers, strict=True)
        if offer and one.sponsor_refusal
    ]
    if refused:
        refusals.count(refused, now=payers[0].call.request.now)


class Payers(NamedTuple):
    """
    The call, with a sponsorship if a policy pays; otherwise why the sponsor does not.

    `refusal` is set if the call is refused for that reason, because the caller does not let the user pay instead.
    """

    call: ApprovedCall
    sponsor_refusal: DomainError | None = None
    refusal: DomainError | None = None


def payers_of(call: ApprovedCall) -> Payers:
    """Decide which policy pays for a single call, and get the answers to its policies' questions."""
    while call.wants_sponsor:
        offers = offers_for([_wanted(call)])
        payers = _payers(call, *offers)
        if payers.call.question is None:
            _count_refusals([payers], offers)
            return payers
        call = answered(payers.call)
    return Payers(call)


def answered(call: ApprovedCall) -> ApprovedCall:
    """Return the call with the answer to its question. Waits for the network, so call it outside any transaction."""
    question = call.question
    if question is None:
        return call
    # Once a call has asked the maximum number of questions, further answers count as unknown.
    answer = _answer(question, call) if len(call.answers) < _MOST_QUESTIONS else None
    return replace(call, question=None, answers={**call.answers, question: answer})


def _answer(question: Question, call: ApprovedCall) -> Answer | None:
    request = call.request
    if isinstance(question, Holding):
        return holdings.read(question, profile=request.caller.profile_address)
    asked = AskedCall(
        profile=request.caller.profile_address,
        controller=request.identity.controller,
        chain_id=get_chain().id,
        digest=request.identity.digest,
        payload=request.call.payload,
    )
    return verifiers.ask(question, asked)


def _payers(call: ApprovedCall, offer: Offer | None) -> Payers:
    try:
        return Payers(_paid(call, offer))
    except DomainError as refusal:
        choice = call.request.sponsor
        if choice is not None and choice.own_refusal is not None:
            return Payers(call, refusal=choice.own_refusal)
        if choice is None or not choice.user_may_pay or _is_quoted(call):
            return Payers(call, refusal, refusal)
        return Payers(replace(call, request=replace(call.request, sponsor=None)), refusal)


def offered_to_default(call: ApprovedCall, refusal: InsufficientCredits) -> ApprovedCall | DomainError:
    """Return the call with the operator's default sponsor; the error `refusal` if no default sponsor can pay for it."""
    choice = call.request.sponsor
    if choice is not None:
        return choice.own_refusal or refusal
    slug = None if _is_quoted(call) else default_sponsor()
    if slug is None:
        return refusal
    sponsor = SponsorChoice(slug, own_refusal=refusal)
    return replace(call, request=replace(call.request, sponsor=sponsor))


def _is_quoted(call: ApprovedCall) -> bool:
    return call.rows.quote is not None and call.rows.quote.sponsor_version_id is not None


def _wanted(call: ApprovedCall) -> Wanted:
    request, quote = call.request, call.rows.quote
    return Wanted(
        slug=request.sponsor.slug if request.sponsor else None,
        version_id=quote.sponsor_version_id if quote else None,
        user_id=request.caller.user_id,
        profile=request.caller.profile_address,
        now=request.now,
    )


def _paid(call: ApprovedCall, offer: Offer | None) -> ApprovedCall:
    """
    Return the call with the policy that pays, or with a question.

    Raises:
        SponsorUnknown, SponsorFrozen, SponsorWithoutCredits, SponsorBusy: see `sponsors.errors`.
        PolicyRefused: no policy pays; the error is that of the rule.
    """
    if offer is None:
        raise SponsorUnknown("No sponsor has this name.")
    if offer.is_frozen:
        raise SponsorFrozen("The sponsor pays for no calls at the moment.", sponsor=offer.slug)
    if call.decisions >= _MOST_DECISIONS:
        raise SponsorBusy("Many calls change what the sponsor's policies have left.", retry_after=1)
    brought = _voucher(call, offer)
    facts = Facts(
        actions=_actions(call, offer),
        profile_since=offer.profile_since,
        credits=call.hold_credits,
        gas_price_wei=call.approval.fees.max_fee_per_gas_wei,
        now=call.request.now,
        listed=frozenset(offer.listed),
        voucher=brought.voucher,
        voucher_fault=brought.fault,
        answers=call.answers,
    )
    decision = decide(offer.versions, facts, offer.usage)
    if decision.question is not None:
        return replace(call, question=decision.question)
    if decision.paid_by is None:
        raise decision.error()
    if offer.available < decision.sponsor_credits:
        raise SponsorWithoutCredits(
            "The sponsor's account has too few credits for this call.", sponsor=offer.slug
        )
    used = brought if decision.paid_by.profiles is Profiles.VOUCHED else _NO_VOUCHER
    sponsorship = Sponsorship(
        offer.slug,
        decision.paid_by.policy,
        decision.paid_by.version_id,
        decision.paid_by.share_percent,
        decision.sponsor_credits,
        _is_quoted(call),
        used.voucher,
        used.signer,
    )
    return replace(call, sponsorship=sponsorship, decisions=call.decisions + 1)


class _Brought(NamedTuple):
    """A call's valid voucher and its signer, or why the voucher is not valid."""

    voucher: Voucher | None = None
    signer: str | None = None
    fault: PolicyRefused | None = None


_NO_VOUCHER = _Brought()


def _voucher(call: ApprovedCall, offer: Offer) -> _Brought:
    """Verify and return the call's voucher, if any policy requires one."""
    choice = call.request.sponsor
    wanted = any(version.profiles is Profiles.VOUCHED for version in offer.versions)
    if choice is None or choice.voucher is None or not wanted:
        return _NO_VOUCHER
    voucher = choice.voucher.voucher
    state = voucher_state(sponsor=offer.slug, voucher_id=voucher.voucher_id)
    try:
        signer = verify(
            voucher,
            choice.voucher.signature,
            chain_id=get_chain().id,
            sponsor=offer.slug,
            signers=state.signers,
            profile=call.request.caller.profile_address,
            now=call.request.now,
        )
    except VoucherRefused as fault:
        return _Brought(fault=fault)
    if state.is_used:
        used = VoucherUsed("Another call has used this voucher.", id="0x" + voucher.voucher_id.hex())
        return _Brought(fault=used)
    return _Brought(voucher, signer)


def _actions(call: ApprovedCall, offer: Offer) -> tuple[Action, ...] | None:
    """Return what the payload calls; None if it does not decode; () if no policy lists contracts."""
    if not any(version.targets for version in offer.versions):
        return ()
    try:
        return actions_of(
            call.request.call.payload,
            profile=call.request.caller.profile_address,
            key_manager=call.request.call.key_manager,
        )
    except Unreadable:
        return None
