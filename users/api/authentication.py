"""Authentication of requests: `Authorization: Bearer <JWT>`, or the bare `<JWT>`, of a signed-in profile."""

from typing import TYPE_CHECKING, Any, cast

from django.conf import settings
from django.db import Error as DatabaseError
from rest_framework import exceptions as drf
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework_simplejwt.authentication import JWTAuthentication

from gateway.common.clock import now
from gateway.common.errors import DomainError, NotAuthenticated
from users.errors import AccessTokenKindRefused, AccessTokenMalformed
from users.models import User
from users.services.external_issuer import ExternalAccessToken
from users.services.profiles import user_of_profile
from users.services.sessions import require_active, session_of
from users.tokens import REFRESH_PREFIX, AccessToken, TokenHolder

if TYPE_CHECKING:
    from rest_framework.views import APIView as _View
else:
    # REST framework imports this module while it builds APIView.
    _View = object

_TOKEN_REFUSED = (NotAuthenticated, drf.NotAuthenticated, drf.AuthenticationFailed)


class AccessTokenAuthentication(JWTAuthentication):
    """
    simplejwt's authentication with our error documents, an optional scheme, and sessions that can be ended.

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
        """Verify the token as one of its claimed issuer: this service, or the configured external one."""
        if raw_token.startswith(REFRESH_PREFIX.encode()):
            raise AccessTokenKindRefused("This is a refresh token. Send it to /api/auth/refresh.")
        if settings.AUTH_EXTERNAL_JWKS_URL and ExternalAccessToken.reads(raw_token):
            return ExternalAccessToken(raw_token)
        return AccessToken(raw_token)

    def get_user(self, validated_token: AccessToken) -> User:  # type: ignore[override]
        """Return the user; for our own tokens this reads the session, which may have ended."""
        if isinstance(validated_token, ExternalAccessToken):
            return user_of_profile(profile_address=validated_token.profile_address)
        validated_token.session = session_of(validated_token, now=now())
        return validated_token.session.user


class VerifiedTokenAuthentication(AccessTokenAuthentication):
    """
    Leaves the session check to the view, which reads the session together with its other rows.

    Sets `request.user` to the token's `TokenHolder`. Use it together with `SessionReadLate`.
    """

    def get_user(self, validated_token: AccessToken) -> TokenHolder:  # type: ignore[override]
        """Return the token's holder; only a token of an external issuer costs a query."""
        profile_address = validated_token.profile_address
        if isinstance(validated_token, ExternalAccessToken):
            user = user_of_profile(profile_address=profile_address)
            return TokenHolder(user.pk, profile_address, None)
        return TokenHolder(validated_token.user_id, profile_address, validated_token.session_id)


class SessionReadLate(_View):
    """
    A view whose own statement reads whether the session is active.

    An ended session is reported before any other fault of the request.
    """

    def handle_exception(self, exc: Exception) -> Response:
        """Return the error; if the view failed before its own statement, an ended session takes precedence."""
        if isinstance(exc, DomainError | drf.APIException) and not isinstance(exc, _TOKEN_REFUSED):
            try:
                require_active(cast("TokenHolder", self.request.user), now=now())
            except (NotAuthenticated, DatabaseError) as first_fault:
                exc = first_fault
        return super().handle_exception(exc)


class ProfileRequest(Request):
    """A request that `IsProfileOwner` has allowed; for annotations of views."""

    user: User
    auth: AccessToken


class IsProfileOwner(BasePermission):
    """Allows the signed-in owner of a profile; staff have no profile."""

    def has_permission(self, request: Request, view: Any) -> bool:
        user = cast("User | None", request.user)
        if user is None:
            return False
        if user.profile_address is None:
            raise NotAuthenticated("Sign in with a Universal Profile.")
        return True
