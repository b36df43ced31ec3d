"""
Slots of relay calls: the hold, relayer and account nonce that `relay_take_slots` takes for a call, or why it refuses.

`relay/functions.sql` describes the outcomes.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.conf import settings

from credits.errors import InsufficientCredits, KeyConflict
from credits.queries import DebtTerms, debt_terms
from gateway.chain.config import get_chain
from gateway.chain.signing import Signer, get_signer
from gateway.common import db
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
from relay.services.accepting import sponsoring
from relay.services.accepting.calls import ApprovedCall
from relay.services.fleet import losses
from relay.services.fleet.relayers import seconds_until_next_block


@dataclass(frozen=True, slots=True)
class Slot:
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


class WaitsForSignature(Exception):
    """An equal call has taken a slot before, and still waits for its signature, so it has no hash yet."""

    def __init__(self, hold_id: int) -> None:
        super().__init__("the call waits for its signature")
        self.hold_id = hold_id


def debt_terms_of(batch: Sequence[ApprovedCall], slots: Sequence[Slot]) -> dict[int, DebtTerms]:
    """Return the debt terms of the users whose credits are insufficient, by place."""
    places = [slot.place for slot in slots if slot.outcome == "insufficient"]
    users = [(batch[place].request.caller.user_id, batch[place].badge_debt) for place in places]
    return dict(zip(places, debt_terms(users), strict=True)) if places else {}


_TAKE_SLOTS = "SELECT * FROM relay_take_slots(%(calls)s::jsonb, %(policy)s::jsonb)"


def take_slots(batch: Sequence[ApprovedCall], policy: dict[str, Any]) -> list[Slot]:
    calls = [
        {
            "place": place,
            "user_id": approved.request.caller.user_id,
            "key": approved.hold_key,
            "credits": approved.user_credits,
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
            "sponsor": sponsoring.as_json(approved.sponsorship),
        }
        for place, approved in enumerate(batch)
    ]
    params = {"calls": json.dumps(calls), "policy": json.dumps(policy)}
    return [Slot(*row) for row in db.all_rows(_TAKE_SLOTS, params)]


def policy_of(batch: Sequence[ApprovedCall], signer: Signer) -> dict[str, Any]:
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


def hash_or_refusal(
    approved: ApprovedCall, slot: Slot, terms: Mapping[int, DebtTerms]
) -> str | ApprovedCall | Exception:
    """
    Return the hash of an equal call, or the error of this one.

    Returns the call itself, without a sponsorship, if a sponsor must decide (again): its policies or their usage have
    changed since, or the default sponsor may pay.
    """
    if slot.outcome.startswith("sponsor-"):
        return replace(approved, sponsorship=None)
    call = approved.request.call
    number = int(slot.number or 0)
    match slot.outcome:
        case "repeated":
            return _hash_of_repeat(approved, slot)
        case "insufficient":
            limit, lendable = terms[slot.place]
            refusal = InsufficientCredits(
                required=approved.user_credits, available=number, debt_limit=limit, lendable=lendable
            )
            return sponsoring.offered_to_default(approved, refusal)
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


def _hash_of_repeat(approved: ApprovedCall, slot: Slot) -> str | Exception:
    if slot.user_id != approved.request.caller.user_id:
        return KeyConflict(key=approved.hold_key)
    if slot.transaction_hash is None:
        if get_signer().is_remote:
            return WaitsForSignature(int(slot.hold_id or 0))
        return RuntimeError("a relay hold has no relay transaction")
    return slot.transaction_hash
