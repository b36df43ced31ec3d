"""How a request proves who is asking: `Authorization: Bearer <JWT>`, or the bare `<JWT>`."""

from typing import cast

from django.utils.timezone import now
from rest_framework.authentication import BaseAuthentication
from rest_framework.request import Request

from gateway.common.errors import NotAuthenticated
from users.errors import AccessTokenMalformed
from users.models import User
from users.services.access import AccessGrant, authenticate

_SCHEME = "bearer"


class AccessTokenAuthentication(BaseAuthentication):
    """Sets `request.user` to the token's `User` and `request.auth` to its `AccessGrant`."""

    def authenticate(self, request: Request) -> tuple[User, AccessGrant] | None:
        token = _token_of(request.META.get("HTTP_AUTHORIZATION", ""))
        return None if token is None else authenticate(token=token, now=now())

    def authenticate_header(self, request: Request) -> str:
        return "Bearer"


def _token_of(header: str) -> str | None:
    parts = header.split()
    if parts and parts[0].lower() == _SCHEME:
        parts = parts[1:]
    if len(parts) > 1:
        raise AccessTokenMalformed("Send the header as Authorization: Bearer <JWT>.")
    return parts[0] if parts else None


def profile_owner(request: Request) -> User:
    """
    Return the signed-in user as the owner of a profile.

    Raises:
        NotAuthenticated: a member of staff, who has no profile to act for.
    """
    user = cast("User", request.user)
    if user.profile_address is None:
        raise NotAuthenticated("Sign in with a Universal Profile.")
    return user
