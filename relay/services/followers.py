"""Followers: calls accepted behind others of their channel, whose fate they share while they are unsent."""

from relay.models import RelayTransaction


def lost_its_predecessor(*, row: RelayTransaction) -> bool:
    """Return whether the call before this follower in its channel cannot be executed any more."""
    if not row.is_follower:
        return False
    predecessor = (
        RelayTransaction.objects.standing()
        .of_channel(
            key_manager=row.key_manager_address, controller=row.controller_address, channel=row.channel
        )
        # A repeat of a failed predecessor was accepted later, and its account nonce comes later too.
        .filter(relay_nonce=row.relay_nonce - 1, pk__lt=row.pk)
        .values_list("ends_as", "status")
        .first()
    )
    if predecessor is None:
        return True
    ends_as, status = predecessor
    return bool(ends_as) and status in RelayTransaction.IN_PROGRESS
