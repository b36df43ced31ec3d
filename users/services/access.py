"""
Who is asking: an access token of ours, or of the external issuer where one is configured.

Accounts: the user of a profile, made when the profile is first vouched for.

The external issuer's keys: fetched by beat, read by requests.

A request never waits for the issuer's network, and an issuer that is away signs
nobody out: the last good set stays in force.
"""

import logging
import uuid
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.conf import settings
from django.contrib.auth.hashers import make_password
from django.db import transaction
from jwt import PyJWK
from jwt.exceptions import InvalidKeyError, PyJWKError

from gateway.common.fields import checksum
from gateway.common.http import FetchFailed, fetch_json
from users import queries
from users.errors import AccessTokenKindRefused, AccessTokenMalformed, AccountInactive, SessionEnded
from users.models import IssuerKeySet, User
from users.signals import user_created
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
    user = user_of_profile(profile_address=profile_address)
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


def user_of_profile(*, profile_address: str) -> User:
    """
    Return the profile's user, made together with its credit account on the first call.

    Simultaneous first calls get the same user.

    Raises:
        AccountInactive: support has closed the account.
    """
    user = User.objects.filter(profile_address=profile_address).first() or _create(profile_address)
    if not user.is_active:
        raise AccountInactive("Support has closed this account.")
    return user


def _create(profile_address: str) -> User:
    # Without a usable password a wallet user never passes the staff's door.
    defaults = {"username": profile_address, "password": make_password(None)}
    with transaction.atomic():
        user, created = User.objects.get_or_create(profile_address=profile_address, defaults=defaults)
        if created:
            user_created.send(sender=User, user=user)
    return user


logger = logging.getLogger(__name__)
_PUBLIC_KEY_TYPES = {"EC", "RSA", "OKP"}


def refresh_issuer_keys(*, now: datetime) -> bool:
    """Fetch and store the issuer's keys; return whether that worked. Without an issuer there is nothing to do."""
    url = settings.AUTH_EXTERNAL_JWKS_URL
    if not url:
        return False
    try:
        keys = _usable_keys(fetch_json(url))
    except (FetchFailed, ValueError) as error:
        logger.warning("the issuer's keys cannot be fetched, the last ones stay: %s", error)
        return False
    IssuerKeySet.objects.update_or_create(url=url, defaults={"keys": keys, "fetched_at": now})
    return True


def _usable_keys(document: Any) -> list[dict[str, Any]]:
    listed = document.get("keys") if isinstance(document, dict) else None
    if not isinstance(listed, list):
        raise ValueError("the answer is no key set")
    found = [key for key in listed if isinstance(key, dict) and _is_usable(key)]
    if not found:
        # An empty set would sign everybody out; an issuer that means it removes the setting.
        raise ValueError("the key set holds no usable key")
    return found


def _is_usable(key: dict[str, Any]) -> bool:
    # A symmetric key in a public document would let anybody sign.
    return (
        key.get("kty") in _PUBLIC_KEY_TYPES
        and isinstance(key.get("kid"), str)
        and key.get("use") in {None, "sig"}
    )
