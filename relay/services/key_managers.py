"""Which key manager controls a profile, for callers that name the profile alone."""

from gateway.chain.client import get_chain_client
from gateway.common.owner import ProfileOwner
from relay.errors import KeyManagerNotFound
from relay.models import RelayTransaction


def remembered(*, user: ProfileOwner) -> str | None:
    """Return the key manager of the user's newest relay call, which was proven to be the profile's, if any."""
    newest = (
        RelayTransaction.objects.filter(user_id=user.pk).order_by("-id").only("key_manager_address").first()
    )
    return None if newest is None else newest.key_manager_address


def has_signed_here(*, key_manager: str, signers: list[str]) -> str | None:
    """Return the first of the signers who made a relay call that was accepted through this key manager, if any."""
    known = RelayTransaction.objects.filter(key_manager_address=key_manager, controller_address__in=signers)
    return known.values_list("controller_address", flat=True).first()


def of_profile(*, profile: str) -> str:
    """
    Return the address of the profile's owner; whether it is a key manager is for the preflight to check.

    Raises:
        KeyManagerNotFound: the profile does not answer `owner()`.
        NodeUnavailable: no node answered.
    """
    state = get_chain_client().read_profile(
        profile=profile, controller=profile, digest=bytes(32), signature=b""
    )
    if state.owner is None:
        raise KeyManagerNotFound(f"{profile} has no owner on this chain.")
    return state.owner
