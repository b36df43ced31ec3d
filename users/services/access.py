"""Who is asking: an access token of ours, or of the external issuer where one is configured."""

import uuid
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.conf import settings
from jwt import PyJWK
from jwt.exceptions import InvalidKeyError, PyJWKError

from gateway.common.fields import checksum
from users import queries
from users.errors import AccessTokenKindRefused, AccessTokenMalformed, AccountInactive, SessionEnded
from users.models import User
from users.services import accounts
from users.tokens import access, refresh
from users.tokens.verification import Issuer, end_of, peek_issuer, read_claims, read_header


@dataclass(frozen=True, slots=True)
class AccessGrant:
    """
    The sign-in that a verified access token belongs to.

    Session, controller and the session's end are None for a token of the external issuer.
    """

    issuer: str
    profile_address: str
    expires_at: datetime
    session_id: uuid.UUID | None = None
    controller_address: str | None = None
    session_expires_at: datetime | None = None


def authenticate(*, token: str, now: datetime) -> tuple[User, AccessGrant]:
    """
    Return the user that the token identifies, and the sign-in that it belongs to.

    Costs one query, so that signing out works at once and not when the token runs out.

    Raises:
        NotAuthenticated: one of its subclasses, which says what is wrong.
    """
    if token.startswith(refresh.PREFIX):
        raise AccessTokenKindRefused("This is a refresh token. Send it to /api/auth/refresh.")
    if settings.AUTH_EXTERNAL_JWKS_URL and peek_issuer(token) == settings.AUTH_EXTERNAL_ISSUER:
        return _authenticate_external(token)
    claims = access.read(token)
    session = queries.session_with_user(session_id=claims.session_id)
    if session is None or session.user_id != claims.user_id or not session.is_living(now=now):
        raise SessionEnded("Sign in again.")
    if not session.user.is_active:
        raise AccountInactive("Support has closed this account.")
    return session.user, AccessGrant(
        issuer=settings.AUTH_ISSUER,
        profile_address=claims.profile_address,
        expires_at=claims.expires_at,
        session_id=session.pk,
        controller_address=session.controller_address,
        session_expires_at=session.expires_at,
    )


def _authenticate_external(token: str) -> tuple[User, AccessGrant]:
    claim = settings.AUTH_EXTERNAL_ADDRESS_CLAIM
    issuer = Issuer(
        settings.AUTH_EXTERNAL_ISSUER,
        settings.AUTH_EXTERNAL_AUDIENCE,
        _external_keys(read_header(token).get("kid")),
        tuple(settings.AUTH_EXTERNAL_ALGORITHMS),
        ("iss", "aud", "exp", claim),
    )
    claims = read_claims(token, issuer=issuer)
    try:
        profile_address = checksum(str(claims[claim]))
    except ValueError as error:
        raise AccessTokenMalformed(f"The claim {claim} is not a profile address.") from error
    expires_at = end_of(claims)
    user = accounts.user_of_profile(profile_address=profile_address)
    return user, AccessGrant(issuer=issuer.name, profile_address=profile_address, expires_at=expires_at)


def _external_keys(kid: Any) -> dict[str, PyJWK]:
    for key in queries.issuer_keys(url=settings.AUTH_EXTERNAL_JWKS_URL):
        if key["kid"] == kid:
            try:
                return {str(kid): PyJWK(key)}
            except (InvalidKeyError, PyJWKError):
                # A key of a kind we cannot use is as good as none.
                return {}
    return {}
