"""
The order of calls within one nonce channel.

A key manager executes a channel's nonces strictly one after the other. A call
ahead of the chain is accepted only behind calls of ours that stand, on the same
relayer: then the order of account nonces is the order on chain.
"""

from typing import NamedTuple

from django.conf import settings

from gateway.chain.config import get_chain
from gateway.common import sql
from relay.errors import ChannelBusy, RelayNonceGap, RelayNonceTaken
from relay.services import statements
from relay.services.preflight import Approval


def place(*, approval: Approval) -> int | None:
    """
    Check the call's place in its channel; return the id of the relayer it must stick to, or None for any.

    Runs inside the accepting transaction after the credit account is locked. All
    calls of a channel belong to one profile and so to one account: its lock makes
    this read final.

    Raises:
        RelayNonceTaken: another call stands on this nonce.
        RelayNonceGap: a nonce before this one has no living call here.
        ChannelBusy: too many calls wait before this one.
    """
    call = approval.call
    standing = _standing(approval)
    if call.relay_nonce in standing:
        raise RelayNonceTaken(nonce=call.relay_nonce)
    for nonce in range(approval.chain_nonce, call.relay_nonce)[: settings.RELAY_MAX_FOLLOWERS + 1]:
        if nonce not in standing or standing[nonce].is_ending:
            raise RelayNonceGap(
                f"Nonce {nonce} of channel {call.channel} has no living call here.", expectedNonce=str(nonce)
            )
    if call.relay_nonce - approval.chain_nonce > settings.RELAY_MAX_FOLLOWERS:
        raise ChannelBusy(
            f"{settings.RELAY_MAX_FOLLOWERS} calls of channel {call.channel} wait already.",
            retry_after=get_chain().block_seconds,
            maximumFollowers=settings.RELAY_MAX_FOLLOWERS,
        )
    return next((row.relayer_id for row in standing.values() if row.is_in_progress), None)


class _Standing(NamedTuple):
    relayer_id: int
    is_in_progress: bool
    is_ending: bool


def _standing(approval: Approval) -> dict[int, _Standing]:
    """Return the living and the executed calls of the channel that matter, by relay nonce."""
    call = approval.call
    params = {
        "key_manager": call.key_manager,
        "controller": approval.identity.controller,
        "channel": call.channel,
        "chain_nonce": approval.chain_nonce,
    }
    rows = sql.all_rows(statements.STANDING_OF_CHANNEL, params)
    return {int(nonce): _Standing(*rest) for nonce, *rest in rows}
