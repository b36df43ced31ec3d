"""
Slots of relay calls: the hold, relayer and account nonce that `relay_take_slots` takes for a call, or why it refuses.

`relay/functions.sql` describes the outcomes.
"""

import json
from collections.abc import Sequence
from typing import Any

from django.conf import settings

from credits.errors import InsufficientCredits, KeyConflict
from credits.queries import debt_terms
from gateway.chain.config import get_chain
from gateway.chain.signing import Signer
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
from relay.services.accepting import contention
from relay.services.accepting.calls import Slot, SubmittedCall
from relay.services.fleet import losses
from relay.services.fleet.relayers import seconds_until_next_block

_TAKE_SLOTS = "SELECT * FROM relay_take_slots(%(calls)s::jsonb, %(policy)s::jsonb)"


def take_slots(calls: Sequence[SubmittedCall], policy: dict[str, Any]) -> list[Slot]:
    """Take a slot for each call; return the slots or refusals in the order of the calls."""
    wanted = [
        {
            "place": place,
            "user_id": call.caller.user_id,
            "key": call.hold_key,
            "credits": call.user_credits,
            "debt_limit": call.badge_debt,
            "key_manager": call.signed.key_manager,
            "controller": call.identity.controller,
            "channel": call.query.channel,
            "relay_nonce": call.signed.relay_nonce,
            "chain_nonce": call.approval.chain_nonce,
            "worst_cost_wei": call.worst_cost_wei,
            "risk_wei": call.risk_wei,
            "quote": call.quote_id and str(call.quote_id),
            "now": call.now.isoformat(),
            "sponsor": call.sponsorship and call.sponsorship.reference,
        }
        for place, call in enumerate(calls)
    ]
    params = {"calls": json.dumps(wanted), "policy": json.dumps(policy)}
    return sorted((Slot(*row) for row in db.all_rows(_TAKE_SLOTS, params)), key=lambda slot: slot.place)


def policy_of(
    calls: Sequence[SubmittedCall], signer: Signer, *, lock_timeout: str | None = None
) -> dict[str, Any]:
    """
    Return the limits for taking slots.

    This may call a remote signer, so it runs before the transaction.

    Raises:
        SignerUnavailable: the remote signer does not answer.
    """
    if signer.is_remote:
        signer.require_answers()
    has_risk = any(call.risk_wei for call in calls)
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
        "lock_timeout": lock_timeout,
        "relayer_lock_timeout": f"{contention.RELAYER_MILLISECONDS}ms",
    }


def without_slot(outcome: str) -> Slot:
    """Return the slot of a call that was refused by a constraint."""
    return Slot(0, outcome, *(None,) * 8)


def insufficient(call: SubmittedCall) -> InsufficientCredits:
    """Return the error of a call whose user has too few credits."""
    ((limit, lendable),) = debt_terms([(call.caller.user_id, call.badge_debt)])
    return InsufficientCredits(
        required=call.user_credits,
        available=int(call.slot.number or 0),
        debt_limit=limit,
        lendable=lendable,
    )


def check_repeat(call: SubmittedCall) -> None:
    """
    Refuse a call whose slot is that of an equal call of another user.

    Raises:
        KeyConflict: the equal call is another user's.
    """
    if call.slot.user_id != call.caller.user_id:
        raise KeyConflict(key=call.hold_key)


def refusal_of(call: SubmittedCall) -> Exception:
    """Return the error of a call that got no slot."""
    slot, signed = call.slot, call.signed
    number = int(slot.number or 0)
    match slot.outcome:
        case "nonce-taken" | "nonce-unsigned":
            return RelayNonceTaken(nonce=signed.relay_nonce)
        case "nonce-gap":
            return RelayNonceGap(
                f"No pending call uses nonce {number} of channel {signed.channel}.",
                expectedNonce=str(number),
            )
        case "channel-full":
            return ChannelBusy(
                f"{settings.RELAY_MAX_FOLLOWERS} calls of channel {signed.channel} are already waiting.",
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
