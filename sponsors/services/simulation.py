"""Simulation of a described call: which policy of a sponsor would pay for it, and how much."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from gateway.chain.config import home, on_chain
from gateway.common.errors import NotFound
from sponsors.errors import SponsorFrozen
from sponsors.models import Sponsor
from sponsors.queries import Wanted, offers_for
from sponsors.rules.calls import Action
from sponsors.rules.choosing import Decision, decide
from sponsors.rules.policies import Facts, Holding, OutsideResponse, Question
from sponsors.rules.vouchers import UINT64_MAX, Voucher
from sponsors.services import holdings
from users.models import User


@dataclass(frozen=True, slots=True, kw_only=True)
class ImaginedCall:
    """
    A call by its profile, its actions and its cost in credits at a gas price in wei.

    `actions` is None if the payload does not decode. Without `chain_id`, the call is for the home chain. With
    `voucher_for`, the name of a policy, it carries a valid voucher for that policy.
    """

    profile: str
    actions: Sequence[Action] | None
    credits: int
    gas_price_wei: int
    voucher_for: str = ""
    chain_id: int | None = None


_readers: list[Callable[[str], ImaginedCall | None]] = []


def register(reader: Callable[[str], ImaginedCall | None]) -> None:
    """Have executed calls read by their transaction's hash with this function."""
    _readers.append(reader)


def executed(transaction_hash: str, *, voucher_for: str) -> ImaginedCall:
    """
    Return the executed call of a transaction.

    Raises:
        NotFound: the service has executed no call with this hash.
    """
    for reader in _readers:
        if (call := reader(transaction_hash)) is not None:
            return replace(call, voucher_for=voucher_for)
    raise NotFound("The service has executed no call with this hash.")


def simulate(*, sponsor: Sponsor, call: ImaginedCall, now: datetime) -> Decision:
    """
    Return the decision that the relay would make now; store and count nothing. An unknown profile counts as new.

    Raises:
        SponsorFrozen, SponsorWithoutCredits, SponsorBudgetUsed: as for a real call.
    """
    user = User.objects.filter(profile_address=call.profile).first()
    wanted = Wanted(sponsor.slug, None, user.pk if user else 0, call.profile, now)
    (offer,) = offers_for([wanted])
    assert offer is not None, "the sponsor has an account"  # noqa: S101 - opened with the sponsor
    if offer.is_frozen:
        raise SponsorFrozen("The sponsor is frozen, so it pays for no calls.", sponsor=sponsor.slug)
    responses: dict[Question, OutsideResponse | None] = {}
    facts = Facts(
        actions=None if call.actions is None else tuple(call.actions),
        profile_since=offer.profile_since,
        credits=call.credits,
        gas_price_wei=call.gas_price_wei,
        now=now,
        listed=frozenset(offer.listed),
        voucher=_good_voucher(sponsor, call) if call.voucher_for else None,
        chain_id=home().id if call.chain_id is None else call.chain_id,
        responses=responses,
    )
    while (decision := decide(offer.versions, facts, offer.usage)).question is not None:
        responses[decision.question] = _response(decision.question, call)
    offer.require(decision.sponsor_credits)
    return decision


def _response(question: Question, call: ImaginedCall) -> OutsideResponse | None:
    """Return the chain's response. For a verifier, assume that it agrees: a simulation does not call it."""
    if isinstance(question, Holding):
        with on_chain(home().id if call.chain_id is None else call.chain_id):
            return holdings.read(question, profile=call.profile)
    return OutsideResponse(is_yes=True)


def _good_voucher(sponsor: Sponsor, call: ImaginedCall) -> Voucher:
    return Voucher(
        sponsor=sponsor.slug,
        policy=call.voucher_for,
        profile=call.profile,
        voucher_id=bytes(32),
        deadline=UINT64_MAX,
        maximum_credits=UINT64_MAX,
    )
