"""Whose profile a request may be about."""

from gateway.common.owner import ProfileOwner
from relay.errors import NotYourProfile


def check_own(*, user: ProfileOwner, address: str) -> None:
    """
    Refuse an address that is not the profile of the signed-in user.

    Raises:
        NotYourProfile: it is another one.
    """
    if address != user.profile_address:
        raise NotYourProfile(f"You are signed in as {user.profile_address}.", profile=user.profile_address)
