"""Why a call got no slot: the errors for the outcomes of `relay_take_slots`, which `relay/functions.sql` lists."""

from django.conf import settings

from credits.errors import InsufficientCredits, KeyConflict
from credits.queries import debt_terms
from gateway.chain.config import get_chain
from relay.errors import (
    ChannelBusy,
    PaidCreditsNeeded,
    QuoteUsed,
    RelayersBusy,
    RelayersEmpty,
    RelayNonceGap,
    RelayNonceTaken,
    RelayPaused,
    RelayShareUsed,
)
from relay.services.accepting.calls import SubmittedCall
from relay.services.fleet import relayers
from relay.services.fleet.relayers import seconds_until_next_block

_EMPTY_RETRY_SECONDS = 60


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
        case "unpaid":
            return PaidCreditsNeeded(
                f"Calls on {get_chain().name} are paid with credits from purchases and subscriptions. You need "
                f"{call.user_credits}; you have {number} of them left.",
                required=call.user_credits,
                available=number,
                chainId=get_chain().id,
            )
        case "nonce-taken" | "nonce-unsigned":
            return RelayNonceTaken(nonce=signed.relay_nonce)
        case "nonce-gap":
            return RelayNonceGap(
                f"No pending call uses nonce {number} of channel {signed.channel}. "
                "Send the call with this nonce first.",
                expectedNonce=str(number),
            )
        case "channel-full":
            return ChannelBusy(
                f"{settings.RELAY_MAX_FOLLOWERS} calls of channel {signed.channel} are already waiting.",
                retry_after=get_chain().whole_block_seconds,
                maximumFollowers=settings.RELAY_MAX_FOLLOWERS,
            )
        case "share-used":
            return RelayShareUsed(
                f"At most {number} calls of the profile can be in flight now.",
                retry_after=seconds_until_next_block(),
                maximum=number,
            )
        case "channel-busy":
            return RelayersBusy(
                "The relayer of this channel is full. Retry the call.",
                retry_after=seconds_until_next_block(),
            )
        case "relayers-busy":
            return _no_relayer(relayers.lack(cost_wei=call.worst_cost_wei))
        case "quote-used":
            return QuoteUsed("A call was already accepted with this quote. Prepare the call again.")
        case "loss-limit":
            return RelayPaused("Calls of untrusted code are not accepted at the moment. Retry later.")
    return RuntimeError(f"relay_take_slots returned {slot.outcome}")


def _no_relayer(lack: str) -> Exception:
    if lack == relayers.ALL_EMPTY:
        detail = "No relayer has the funds that this call may cost. Retry the call later."
        return RelayersEmpty(detail, retry_after=_EMPTY_RETRY_SECONDS)
    state = "No relayer is active." if lack else "Every relayer is full."
    return RelayersBusy(f"{state} Retry the call.", retry_after=seconds_until_next_block())
