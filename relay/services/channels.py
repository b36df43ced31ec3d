"""
The order of calls within one nonce channel.

A key manager executes a channel's nonces strictly one after the other. A call
ahead of the chain is accepted only behind calls of ours that stand, on the same
relayer: then the order of account nonces is the order on chain.
"""

from django.conf import settings
from django.db.models import Q

from relay.errors import ChannelBusy, RelayNonceGap, RelayNonceTaken
from relay.models import RelayTransaction
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
    standing = {
        row.relay_nonce: row
        for row in RelayTransaction.objects.standing()
        .of_channel(
            key_manager=call.key_manager, controller=approval.identity.controller, channel=call.channel
        )
        .filter(Q(status__in=RelayTransaction.IN_PROGRESS) | Q(relay_nonce__gte=approval.chain_nonce))
        .only("relay_nonce", "relayer_id", "status", "ends_as")
    }
    if call.relay_nonce in standing:
        raise RelayNonceTaken(
            f"Another call with nonce {call.relay_nonce} is in progress or executed.",
            nonce=str(call.relay_nonce),
        )
    for nonce in range(approval.chain_nonce, call.relay_nonce)[: settings.RELAY_MAX_FOLLOWERS + 1]:
        if nonce not in standing or standing[nonce].ends_as:
            raise RelayNonceGap(
                f"Nonce {nonce} of channel {call.channel} has no living call here.", expectedNonce=str(nonce)
            )
    if call.relay_nonce - approval.chain_nonce > settings.RELAY_MAX_FOLLOWERS:
        raise ChannelBusy(
            f"{settings.RELAY_MAX_FOLLOWERS} calls of channel {call.channel} wait already.",
            retry_after=settings.CHAIN_BLOCK_SECONDS,
            maximumFollowers=settings.RELAY_MAX_FOLLOWERS,
        )
    return next((row.relayer_id for row in standing.values() if row.is_in_progress), None)
