"""
The external issuer, if one is configured: its tokens, and the keys that verify them.

A task of beat fetches the keys, and requests read them from the database. A request therefore
never waits for the issuer's network, and users stay signed in while the issuer is unreachable:
the last valid key set stays in use.
"""

import logging
from datetime import datetime
from typing import Any

import jwt
from django.conf import settings
from jwt import PyJWK
from jwt.exceptions import InvalidKeyError, PyJWKError
from rest_framework_simplejwt.backends import TokenBackend
from rest_framework_simplejwt.exceptions import TokenError

from gateway.common.fields import checksum
from gateway.common.http import FetchFailed, fetch_json
from users import errors, queries
from users.models import IssuerKeySet
from users.tokens import AccessToken, KeySetBackend, read_header

logger = logging.getLogger(__name__)
_ALGORITHMS = {"ES256", "RS256"}
_PUBLIC_KEY_TYPES = {"EC", "RSA", "OKP"}


class _IssuerKeysBackend(KeySetBackend):
    def find_key(self, header: dict[str, Any]) -> Any | None:
        for key in queries.issuer_keys(url=settings.AUTH_EXTERNAL_JWKS_URL):
            if key["kid"] == header.get("kid"):
                try:
                    return PyJWK(key)
                except (InvalidKeyError, PyJWKError):
                    # Ignore a key of an unsupported kind.
                    return None
        return None


class ExternalAccessToken(AccessToken):
    """A token of the external issuer, which names a profile and belongs to none of our sessions."""

    @classmethod
    def reads(cls, raw_token: bytes) -> bool:
        """Return whether the token claims to be the issuer's; does not verify it."""
        try:
            claims = jwt.decode(raw_token, options={"verify_signature": False})
        except jwt.InvalidTokenError:
            return False
        return bool(claims.get("iss") == settings.AUTH_EXTERNAL_ISSUER)

    def get_token_backend(self) -> TokenBackend:
        algorithm = read_header(self.token).get("alg")
        if algorithm not in _ALGORITHMS:
            raise errors.AccessTokenAlgorithmRefused("The algorithm is not accepted for this issuer.")
        return _IssuerKeysBackend(
            algorithm, audience=settings.AUTH_EXTERNAL_AUDIENCE, issuer=settings.AUTH_EXTERNAL_ISSUER
        )

    def verify(self) -> None:
        try:
            # An external token needs neither a token type nor a `jti`.
            self.check_exp()
            self.profile_address = checksum(str(self[settings.AUTH_EXTERNAL_ADDRESS_CLAIM]))
        except (TokenError, KeyError, ValueError, TypeError, OverflowError, OSError) as error:
            raise errors.AccessTokenMalformed("The claims lack a profile address or an expiry.") from error


def refresh_keys(*, now: datetime) -> bool:
    """Fetch and store the issuer's keys; return whether that succeeded. Without an issuer, do nothing."""
    url = settings.AUTH_EXTERNAL_JWKS_URL
    if not url:
        return False
    try:
        keys = _usable_keys(fetch_json(url))
    except (FetchFailed, ValueError) as error:
        logger.warning("the issuer's keys could not be fetched, the previous ones stay: %s", error)
        return False
    IssuerKeySet.objects.update_or_create(url=url, defaults={"keys": keys, "fetched_at": now})
    return True


def _usable_keys(document: Any) -> list[dict[str, Any]]:
    listed = document.get("keys") if isinstance(document, dict) else None
    if not isinstance(listed, list):
        raise ValueError("the response is not a key set")
    keys = [key for key in listed if isinstance(key, dict) and _is_usable(key)]
    if not keys:
        # An empty set would sign out every user; an operator who intends that removes the setting.
        raise ValueError("the key set has no usable key")
    return keys


def _is_usable(key: dict[str, Any]) -> bool:
    # Anyone could sign with a symmetric key from a public document.
    return (
        key.get("kty") in _PUBLIC_KEY_TYPES
        and isinstance(key.get("kid"), str)
        and key.get("use") in {None, "sig"}
    )
