"""What the lower floors know about a user: enough to own a row, and nothing about signing in."""

from typing import Any, Protocol, cast

from django.http import HttpRequest
from rest_framework.request import Request

from gateway.common.errors import NotAuthenticated


class ProfileOwner(Protocol):
    """A signed-in user who owns a Universal Profile."""

    @property
    def pk(self) -> Any: ...

    @property
    def profile_address(self) -> str | None: ...


def profile_owner(request: Request) -> ProfileOwner:
    """
    Return the signed-in user as the owner of a profile.

    Raises:
        NotAuthenticated: a member of staff, who has no profile to act for.
    """
    user = cast("ProfileOwner", request.user)
    if user.profile_address is None:
        raise NotAuthenticated("Sign in with a Universal Profile.")
    return user


def staff_of(request: HttpRequest) -> ProfileOwner:
    """Return the signed-in member of staff; the admin lets nobody else in."""
    return cast("ProfileOwner", request.user)
