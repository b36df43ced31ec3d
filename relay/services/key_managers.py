"""Which key manager controls a profile, for callers that name the profile alone."""

from gateway.chain.client import get_chain_client
from relay.errors import KeyManagerNotFound


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
