"""
Access tokens, issued and verified through simplejwt, and opaque refresh tokens.

simplejwt supports a single key without a `kid`. This module extends its backend to several keys, so that a key can be
rotated, and converts its errors to ours. The `jwk`, `jku` and `x5u` of a token's header are never used.

simplejwt verifies a token once in each process; until the token expires, later requests use the verified claims from
memory. Each request reads from the database whether the token's session has ended.
"""

import functools
import hmac
import secrets
import uuid
from abc import ABC, abstractmethod
from base64 import urlsafe_b64encode
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from typing import Any, ClassVar, Self, cast

import jwt
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from rest_framework_simplejwt import tokens as simplejwt
from rest_framework_simplejwt.backends import TokenBackend
from rest_framework_simplejwt.exceptions import TokenError
from rest_framework_simplejwt.settings import api_settings
from rest_framework_simplejwt.utils import datetime_from_epoch

from gateway.common import clock
from gateway.common.errors import NotAuthenticated
from users import errors
from users.keys import signing_keys
from users.models import SignInSession

HEADER_TYPE = "at+jwt"
# The prefix lets scanners find leaked refresh tokens, and identifies one in the wrong place.
REFRESH_PREFIX = "rt_"
_REFRESH_RANDOM_BYTES = 32
# The tolerance in seconds for an external issuer's `nbf`.
_LEEWAY = 60

_CLAIM_INVALID = "A claim of the token is missing or invalid. Sign in again at /api/auth/verify."
_PROBLEMS: tuple[tuple[type[jwt.InvalidTokenError], type[NotAuthenticated], str], ...] = (
    (jwt.ImmatureSignatureError, errors.AccessTokenExpired, "The token is not valid yet. Get another one."),
    (
        jwt.InvalidAlgorithmError,
        errors.AccessTokenAlgorithmRefused,
        "The algorithm is not accepted for this issuer. Send the access token of /api/auth/verify.",
    ),
    (
        jwt.InvalidSignatureError,
        errors.AccessTokenSignatureInvalid,
        "The token's signature is invalid. Send it unchanged, or sign in again.",
    ),
    (
        jwt.InvalidIssuerError,
        errors.AccessTokenIssuerRefused,
        "The issuer is not accepted. Send the access token of this service's /api/auth/verify.",
    ),
    (
        jwt.InvalidAudienceError,
        errors.AccessTokenAudienceRefused,
        "The token is for another service. Sign in at this service's /api/auth/verify.",
    ),
)


def read_header(token: Any) -> dict[str, Any]:
    """
    Return the token's header, unverified.

    Raises:
        AccessTokenMalformed: the text is not a JSON Web Token.
    """
    try:
        return jwt.get_unverified_header(token)
    except jwt.InvalidTokenError as error:
        raise errors.AccessTokenMalformed(
            "The header contains no JSON Web Token. Send the access token of /api/auth/verify, unchanged."
        ) from error


class KeySetBackend(TokenBackend, ABC):
    """simplejwt's backend for an issuer with several keys, of which the token's `kid` names one."""

    @abstractmethod
    def find_key(self, header: dict[str, Any]) -> Any | None:
        """Return the issuer's key that the header names, or None."""

    def get_verifying_key(self, token: Any) -> Any:
        header = read_header(token)
        key = self.find_key(header)
        # Checked before the key, so that alg "none" gets its own error.
        if header.get("alg") != self.algorithm:
            raise jwt.InvalidAlgorithmError
        if key is None:
            raise errors.AccessTokenKeyUnknown(
                "The issuer has no key with this id. Sign in again at /api/auth/verify."
            )
        return key

    def decode(self, token: Any, verify: bool = True) -> dict[str, Any]:
        """
        Return the claims of a token that the issuer signed for us and that has not expired.

        Raises:
            NotAuthenticated: as one of its AccessToken… subclasses.
        """
        try:
            claims: dict[str, Any] = jwt.decode(
                token,
                self.get_verifying_key(token),
                algorithms=[self.algorithm],
                audience=self.audience,
                issuer=self.issuer,
                leeway=_LEEWAY,
                # The clock of the issuing host may be ahead. The expiry is compared with the common clock.
                options={
                    "verify_aud": self.audience is not None,
                    "verify_signature": verify,
                    "verify_iat": False,
                    "verify_exp": False,
                },
            )
        except jwt.PyJWTError as error:
            raise _problem_of(error) from error
        if verify:
            _require_unexpired(claims)
        return claims


def _require_unexpired(claims: dict[str, Any]) -> None:
    # `AccessToken` refuses a token without `exp`.
    try:
        is_expired = "exp" in claims and int(claims["exp"]) <= clock.now().timestamp()
    except (TypeError, ValueError, OverflowError) as error:
        raise errors.AccessTokenMalformed(
            "The expiry of the token is not a number. Sign in again at /api/auth/verify."
        ) from error
    if is_expired:
        raise errors.AccessTokenExpired("Exchange the refresh token for a new one.")


def _problem_of(error: jwt.PyJWTError) -> NotAuthenticated:
    for kind, problem, detail in _PROBLEMS:
        if isinstance(error, kind):
            return problem(detail)
    return errors.AccessTokenMalformed(_CLAIM_INVALID)


class _OwnKeysBackend(KeySetBackend):
    """Signs with the first of `AUTH_SIGNING_KEYS` and names it; verifies with any of them."""

    def find_key(self, header: dict[str, Any]) -> Any | None:
        if header.get("typ") != HEADER_TYPE:
            raise errors.AccessTokenKindRefused(
                "Send the access token of /api/auth/verify, not another token of ours."
            )
        return next((key.public_key for key in signing_keys() if key.kid == header.get("kid")), None)

    def encode(self, payload: dict[str, Any]) -> str:
        key = signing_keys()[0]
        claims = {**payload, "iss": self.issuer, "aud": self.audience}
        headers = {"kid": key.kid, "typ": HEADER_TYPE}
        return jwt.encode(claims, key.private_key, algorithm=self.algorithm, headers=headers)

    def decode(self, token: Any, verify: bool = True) -> dict[str, Any]:
        if not verify:
            return super().decode(token, verify)
        claims = _verified_claims(settings.AUTH_SIGNING_KEYS, token)
        _require_unexpired(claims)
        return dict(claims)


_OWN_BACKEND = _OwnKeysBackend(
    api_settings.ALGORITHM, audience=api_settings.AUDIENCE, issuer=api_settings.ISSUER
)


@functools.lru_cache(maxsize=4_096)
def _verified_claims(keys: str, token: str | bytes) -> dict[str, Any]:
    """
    Return the claims of a token after simplejwt has verified it with `keys`; raises as simplejwt does.

    A wallet sends the same token for minutes, and a valid signature stays valid, so the result is cached by token.
    Refused tokens are not cached. The caller must check for each request that the token has not expired.
    """
    return KeySetBackend.decode(_OWN_BACKEND, token)


class AccessToken(simplejwt.AccessToken):
    """
    A short-lived token that names a user and a sign-in session; `SIMPLE_JWT` configures it.

    Reading an invalid token raises the subclass of `NotAuthenticated` that describes the fault.
    """

    # The session that authentication has read; a token of an external issuer has none.
    session: SignInSession | None = None
    user_id: int
    session_id: uuid.UUID
    profile_address: str

    def __init__(self, token: str | bytes | None = None, verify: bool = True) -> None:
        # simplejwt's annotation says that the text of a token is a token.
        super().__init__(cast("Any", token), verify)

    @classmethod
    def for_session(cls, session: SignInSession, *, now: datetime) -> Self:
        """Return a token of the session, valid from `now` for `ACCESS_TOKEN_LIFETIME`."""
        token = cls.for_user(session.user)
        token.set_iat(at_time=now)
        token.set_exp(from_time=now)
        token["address"] = session.user.profile_address
        token["sid"] = str(session.pk)
        token["ctl"] = session.controller_address
        return token

    def get_token_backend(self) -> TokenBackend:
        return _OWN_BACKEND

    @property
    def expires_at(self) -> datetime:
        return datetime_from_epoch(self["exp"])

    @property
    def issuer(self) -> str:
        return str(self["iss"])

    def verify(self) -> None:
        try:
            super().verify()
            self.read_claims()
        except (TokenError, KeyError, ValueError, TypeError, OverflowError, OSError) as error:
            raise errors.AccessTokenMalformed(_CLAIM_INVALID) from error

    def check_exp(self, claim: str = "exp", current_time: datetime | None = None) -> None:
        """Require that the claim is in the future by the common clock."""
        super().check_exp(claim, current_time or clock.now())

    def verify_token_type(self) -> None:
        try:
            super().verify_token_type()
        except TokenError as error:
            raise errors.AccessTokenKindRefused(
                "Send the access token of /api/auth/verify, not another token of ours."
            ) from error

    def read_claims(self) -> None:
        """Require and read the claims that simplejwt does not know."""
        for claim in ("iat", "address", "ctl"):
            if self[claim] is None:
                raise ValueError(claim)
        int(self["iat"])
        self.user_id = int(self[api_settings.USER_ID_CLAIM])
        self.session_id = uuid.UUID(str(self["sid"]))
        self.profile_address = str(self["address"])


@dataclass(frozen=True, slots=True)
class TokenHolder:
    """
    The holder of a verified access token, for views whose own statement reads whether the session is active.

    Their statements embed `users.queries.session_state` and pass its result to `require_active_state`.
    """

    # The user's id, used by rate limits and the request log.
    pk: int
    profile_address: str
    # None for a token of an external issuer, whose user was already read.
    session_id: uuid.UUID | None

    is_authenticated: ClassVar[bool] = True
    is_active: ClassVar[bool] = True


def new_refresh_token() -> str:
    """Return the first refresh token of a session."""
    return REFRESH_PREFIX + _text(secrets.token_bytes(_REFRESH_RANDOM_BYTES))


def next_refresh_token(token: str) -> str:
    """
    Return the refresh token for which `token` is exchanged: its HMAC under a server secret.

    Only the service can compute the HMAC, as often as needed. A client that lost the response
    repeats its request and gets the same token, although the token is never stored.
    """
    if not settings.AUTH_REFRESH_SECRET:
        raise ImproperlyConfigured("This process has no AUTH_REFRESH_SECRET.")
    return REFRESH_PREFIX + _text(
        hmac.digest(settings.AUTH_REFRESH_SECRET.encode(), token.encode(), "sha256")
    )


def hash_of(token: str) -> str:
    """Return the hash under which a refresh token is stored; 256 random bits need no slow hash."""
    return sha256(token.encode()).hexdigest()


def _text(raw: bytes) -> str:
    return urlsafe_b64encode(raw).rstrip(b"=").decode()
