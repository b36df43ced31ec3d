"""Who makes a request: `Authorization: Bearer <JWT>`, or the bare `<JWT>`, of a profile that has signed in."""

from typing import Any, cast

from django.utils.timezone import now
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework_simplejwt.authentication import JWTAuthentication
from rest_framework_simplejwt.settings import api_settings

from gateway.common.errors import NotAuthenticated
from users.errors import AccessTokenKindRefused, AccessTokenMalformed
from users.models import User
from users.services.external_issuer import ExternalAccessToken
from users.services.profiles import user_of_profile
from users.services.sessions import session_of
from users.tokens import REFRESH_PREFIX, AccessToken


class AccessTokenAuthentication(JWTAuthentication):
    """
    simplejwt's authentication with our problems, an optional scheme, and sessions that can be ended.

    Sets `request.user` to the token's `User` and `request.auth` to the verified `AccessToken`.
    """

    def get_raw_token(self, header: bytes) -> bytes | None:
        parts = header.split()
        if parts and parts[0].lower() == b"bearer":
            parts = parts[1:]
        if len(parts) > 1:
            raise AccessTokenMalformed("Send the header as Authorization: Bearer <JWT>.")
        return parts[0] if parts else None

    def get_validated_token(self, raw_token: bytes) -> AccessToken:
        """Read the token as the first of AUTH_TOKEN_CLASSES whose issuer it claims to be from."""
        if raw_token.startswith(REFRESH_PREFIX.encode()):
            raise AccessTokenKindRefused("This is a refresh token. Send it to /api/auth/refresh.")
        token_class = next(kind for kind in api_settings.AUTH_TOKEN_CLASSES if kind.reads(raw_token))
        token: AccessToken = token_class(raw_token)
        return token

    def get_user(self, validated_token: AccessToken) -> User:  # type: ignore[override]
        """Return the user; for a token of ours this reads its session, which may have ended."""
        if isinstance(validated_token, ExternalAccessToken):
            return user_of_profile(profile_address=validated_token.profile_address)
        validated_token.session = session_of(validated_token, now=now())
        return validated_token.session.user


class ProfileRequest(Request):
    """A request that `IsProfileOwner` has let pass; views name it in their annotations."""

    user: User
    auth: AccessToken


class IsProfileOwner(BasePermission):
    """Lets the signed-in owner of a profile pass; members of staff have no profile to act for."""

    def has_permission(self, request: Request, view: Any) -> bool:
        user = cast("User | None", request.user)
        if user is None:
            return False
        if user.profile_address is None:
            raise NotAuthenticated("Sign in with a Universal Profile.")
        return True
