"""
Who pays for a call: `payer_of` decides from a sponsor's policies, by the pure rules of `sponsors.rules`.

A call with a voucher costs a statement more, which reads whether the voucher was used.

Nothing is counted here. `sponsors_pay` (`sponsors/functions.sql`) counts the call towards the limits, and holds the
sponsor's credits, in the statement that holds the user's; it refuses if policies or their usage have changed since.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from gateway.chain.config import get_chain
from sponsors.errors import (
    PolicyRefused,
    SponsorFrozen,
    SponsorUnknown,
    VoucherRefused,
    VoucherUsed,
)
from sponsors.queries import Offer, Wanted, voucher_state
from sponsors.rules.calls import Action, Unreadable, actions_of
from sponsors.rules.choosing import decide
from sponsors.rules.policies import (
    Facts,
    Holding,
    OutsideResponse,
    Profiles,
    Purpose,
    Question,
    sponsor_part,
)
from sponsors.rules.vouchers import SignedVoucher, Voucher, verify
from sponsors.services import holdings, verifiers
from sponsors.services.verifiers import AskedCall

# Further questions of one call count as questions without a response.
_MOST_QUESTIONS = 8


@dataclass(frozen=True, slots=True)
class SponsorChoice:
    """The sponsor that a request names, its voucher, and whether the user pays if the sponsor does not."""

    slug: str
    user_may_pay: bool = False
    voucher: SignedVoucher | None = None


@dataclass(frozen=True, slots=True)
class Bill:
    """
    A call that needs a payer: at most `credits`, at `gas_price_wei`.

    A quote has named `quoted_version`, the version of a policy that alone may then pay; otherwise `choice` has the
    sponsor.
    """

    user_id: int
    asked: AskedCall
    key_manager: str
    credits: int
    gas_price_wei: int
    now: datetime
    choice: SponsorChoice | None = None
    quoted_version: int | None = None
    purpose: Purpose = Purpose.CALLS

    @property
    def wanted(self) -> Wanted:
        """What to read about the sponsor: see `sponsors.queries.offers_for`."""
        slug = self.choice.slug if self.choice else None
        return Wanted(slug, self.quoted_version, self.user_id, self.asked.profile, self.now)


@dataclass(frozen=True, slots=True)
class Sponsorship:
    """
    A sponsor pays `share_percent` of a call, at most `credits`. The first credits of a new profile are not among these.

    `reference` is for `sponsors_pay` alone; `version_id` is the version of the policy, for a quote.
    """

    sponsor: str
    policy: str
    version_id: int
    share_percent: int
    credits: int
    reference: Mapping[str, Any]

    def part_of(self, cost: int) -> int:
        """Return the sponsor's part of a cost in credits."""
        return sponsor_part(cost, share_percent=self.share_percent)


def payer_of(
    bill: Bill, offer: Offer | None, responses: Mapping[Question, OutsideResponse | None]
) -> Sponsorship | Question:
    """
    Return what the sponsor pays, or a question whose response its policies need; `responses` has those so far.

    Raises:
        SponsorUnknown, SponsorFrozen, SponsorWithoutCredits, SponsorBudgetUsed: see `sponsors.errors`.
        PolicyRefused: no policy pays; the error is that of the rule.
    """
    if offer is None:
        raise SponsorUnknown("No sponsor has this name.")
    if offer.is_frozen:
        raise SponsorFrozen("The sponsor pays for no calls at the moment.", sponsor=offer.slug)
    brought = _voucher(bill, offer)
    facts = Facts(
        actions=_actions(bill, offer),
        profile_since=offer.profile_since,
        credits=bill.credits,
        gas_price_wei=bill.gas_price_wei,
        now=bill.now,
        chain_id=bill.asked.chain_id,
        purpose=bill.purpose,
        listed=frozenset(offer.listed),
        voucher=brought.voucher,
        voucher_fault=brought.fault,
        responses=responses,
    )
    decision = decide(offer.versions, facts, offer.usage)
    if decision.question is not None:
        return decision.question
    version = decision.paid_by
    if version is None:
        raise decision.error()
    offer.require(decision.sponsor_credits)
    used = brought if version.profiles is Profiles.VOUCHED else _NO_VOUCHER
    reference = {
        "version": version.version_id,
        "sponsor_credits": decision.sponsor_credits,
        "is_quoted": bill.quoted_version is not None,
        "voucher": used.voucher and "0x" + used.voucher.voucher_id.hex(),
        "signer": used.signer,
    }
    return Sponsorship(
        offer.slug,
        version.policy,
        version.version_id,
        version.share_percent,
        decision.sponsor_credits - version.first_credits,
        reference,
    )


def response_to(question: Question, bill: Bill, *, asked_before: int) -> OutsideResponse | None:
    """
    Return the response of the chain or of the sponsor's server; None without one.

    Waits for the network, so call it outside any transaction. `asked_before` is the number of the call's questions so
    far; after the maximum, nothing is asked.
    """
    if asked_before >= _MOST_QUESTIONS:
        return None
    if isinstance(question, Holding):
        return holdings.read(question, profile=bill.asked.profile)
    return verifiers.ask(question, bill.asked)


class _Brought(NamedTuple):
    """A call's valid voucher and its signer, or why the voucher is not valid."""

    voucher: Voucher | None = None
    signer: str | None = None
    fault: PolicyRefused | None = None


_NO_VOUCHER = _Brought()


def _voucher(bill: Bill, offer: Offer) -> _Brought:
    """Verify and return the call's voucher, if any policy requires one."""
    wanted = any(version.profiles is Profiles.VOUCHED for version in offer.versions)
    if bill.choice is None or bill.choice.voucher is None or not wanted:
        return _NO_VOUCHER
    voucher = bill.choice.voucher.voucher
    state = voucher_state(sponsor=offer.slug, voucher_id=voucher.voucher_id)
    try:
        signer = verify(
            voucher,
            bill.choice.voucher.signature,
            chain_id=get_chain().id,
            sponsor=offer.slug,
            signers=state.signers,
            profile=bill.asked.profile,
            now=bill.now,
        )
    except VoucherRefused as fault:
        return _Brought(fault=fault)
    if state.is_used:
        used = VoucherUsed("Another call has used this voucher.", id="0x" + voucher.voucher_id.hex())
        return _Brought(fault=used)
    return _Brought(voucher, signer)


def _actions(bill: Bill, offer: Offer) -> tuple[Action, ...] | None:
    """Return what the payload calls; None if it does not decode; () if no policy lists contracts."""
    if not any(version.targets for version in offer.versions):
        return ()
    try:
        return actions_of(bill.asked.payload, profile=bill.asked.profile, key_manager=bill.key_manager)
    except Unreadable:
        return None
