"""
The access token: an ES256 JSON Web Token of a few minutes that names a user and a session.

simplejwt lends its token class. Its own backend knows a single key and no `kid`, so
the backend is ours.
"""

import uuid
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import jwt
from django.conf import settings
from rest_framework_simplejwt.backends import TokenBackend
from rest_framework_simplejwt.exceptions import TokenError
from rest_framework_simplejwt.tokens import Token

from users import errors
from users.tokens.keys import ALGORITHM, signing_keys
from users.tokens.verification import Issuer, end_of, read_claims, read_header

HEADER_TYPE = "at+jwt"
_CLAIMS = ("iss", "aud", "exp", "iat", "jti", "sub", "address", "sid", "ctl")


@dataclass(frozen=True, slots=True)
class AccessClaims:
    """What a verified access token says."""

    user_id: int
    profile_address: str
    session_id: uuid.UUID
    controller_address: str
    expires_at: datetime


class _Backend(TokenBackend):
    """Signs with the first key and names it; verifies with any of ours."""

    def encode(self, payload: dict[str, Any]) -> str:
        key = signing_keys()[0]
        claims = {**payload, "iss": settings.AUTH_ISSUER, "aud": settings.AUTH_AUDIENCE}
        header = {"kid": key.kid, "typ": HEADER_TYPE}
        return jwt.encode(claims, key.private_key, algorithm=ALGORITHM, headers=header)

    def decode(self, token: Any, verify: bool = True) -> dict[str, Any]:
        keys = {key.kid: key.private_key.public_key() for key in signing_keys()}
        own = Issuer(settings.AUTH_ISSUER, settings.AUTH_AUDIENCE, keys, (ALGORITHM,), _CLAIMS)
        return read_claims(token, issuer=own)


class AccessToken(Token):
    """A token of the kind `access`, signed and verified by our own backend."""

    token_type = "access"  # noqa: S105
    lifetime = settings.AUTH_ACCESS_LIFETIME

    def get_token_backend(self) -> TokenBackend:
        return _Backend(ALGORITHM)


def issue(
    *, user_id: int, profile_address: str, session_id: uuid.UUID, controller_address: str, now: datetime
) -> str:
    """Return a signed access token that is good from `now` for `AUTH_ACCESS_LIFETIME`."""
    token = AccessToken()
    token.set_iat(at_time=now)
    token.set_exp(from_time=now, lifetime=settings.AUTH_ACCESS_LIFETIME)
    token["sub"] = str(user_id)
    token["address"] = profile_address
    token["sid"] = str(session_id)
    token["ctl"] = controller_address
    return str(token)


def read(text: str) -> AccessClaims:
    """
    Return what an access token of ours says.

    Raises:
        NotAuthenticated: one of its subclasses named AccessToken…, which says what is wrong.
    """
    if read_header(text).get("typ") != HEADER_TYPE:
        raise errors.AccessTokenKindRefused("Send the access token, not another token of ours.")
    try:
        claims = AccessToken(text).payload  # type: ignore[arg-type]
        return AccessClaims(
            user_id=int(claims["sub"]),
            profile_address=claims["address"],
            session_id=uuid.UUID(claims["sid"]),
            controller_address=claims["ctl"],
            expires_at=end_of(claims),
        )
    except TokenError as error:
        raise errors.AccessTokenKindRefused("Send the access token, not another token of ours.") from error
    except (ValueError, TypeError) as error:
        raise errors.AccessTokenMalformed("A claim of the token cannot be read.") from error
