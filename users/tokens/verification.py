"""
One strict reading of a signed token, whoever issued it.

The key is chosen by `kid` among the keys that its issuer is known to have, and the
algorithm by that key; `jwk`, `jku` and `x5u` in a token's header are never looked at.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import jwt

from gateway.common.errors import NotAuthenticated
from users import errors

_REFUSALS: tuple[tuple[type[jwt.InvalidTokenError], type[NotAuthenticated], str], ...] = (
    (jwt.ExpiredSignatureError, errors.AccessTokenExpired, "Exchange the refresh token for a new one."),
    (
        jwt.InvalidAlgorithmError,
        errors.AccessTokenAlgorithmRefused,
        "The issuer does not sign with this algorithm.",
    ),
    (jwt.InvalidSignatureError, errors.AccessTokenSignatureInvalid, "The signature does not fit the token."),
    (jwt.InvalidIssuerError, errors.AccessTokenIssuerRefused, "The issuer is not accepted here."),
    (jwt.InvalidAudienceError, errors.AccessTokenAudienceRefused, "The token is meant for another service."),
)


@dataclass(frozen=True, slots=True)
class Issuer:
    """Who is believed: the exact `iss` and `aud`, keys by `kid`, algorithms, claims that must be there."""

    name: str
    audience: str
    keys: Mapping[str, Any]
    algorithms: tuple[str, ...]
    required_claims: tuple[str, ...]


def peek_issuer(token: str) -> str | None:
    """Return the `iss` that the token claims, unverified: good for choosing whom to ask, for nothing else."""
    try:
        claimed = jwt.decode(token, options={"verify_signature": False}).get("iss")
    except jwt.InvalidTokenError:
        return None
    return claimed if isinstance(claimed, str) else None


def read_header(token: str) -> dict[str, Any]:
    """
    Return the token's header, unverified.

    Raises:
        AccessTokenMalformed: the text is no JSON Web Token.
    """
    try:
        return jwt.get_unverified_header(token)
    except jwt.InvalidTokenError as error:
        raise errors.AccessTokenMalformed("The header must carry a JSON Web Token.") from error


def read_claims(token: str, *, issuer: Issuer) -> dict[str, Any]:
    """
    Return the claims of a token that `issuer` signed for us and that is still good.

    Raises:
        AccessTokenMalformed: it is no token, or a claim is missing or cannot be read.
        AccessTokenKeyUnknown, AccessTokenAlgorithmRefused, AccessTokenSignatureInvalid: not the issuer's.
        AccessTokenIssuerRefused, AccessTokenAudienceRefused: somebody else's, or for somebody else.
        AccessTokenExpired: it was good once.
    """
    header = read_header(token)
    # Before the key is looked up, so that alg "none" is reported as such.
    if header.get("alg") not in issuer.algorithms:
        raise errors.AccessTokenAlgorithmRefused("The issuer does not sign with this algorithm.")
    key = issuer.keys.get(header.get("kid", ""))
    if key is None:
        raise errors.AccessTokenKeyUnknown("The issuer has no key of this id.")
    try:
        claims = jwt.decode(
            token,
            key,
            algorithms=issuer.algorithms,
            audience=issuer.audience,
            issuer=issuer.name,
            options={"require": list(issuer.required_claims)},
        )
    # The library lets the overflow of an infinite time through.
    except (jwt.InvalidTokenError, jwt.InvalidKeyError, OverflowError) as error:
        raise _refusal_of(error) from error
    end_of(claims)
    return claims


def end_of(claims: Mapping[str, Any]) -> datetime:
    """
    Return until when the token is good.

    Raises:
        AccessTokenMalformed: `exp` is no number of seconds (RFC 7519, 2), or one that no calendar holds.
    """
    seconds = claims["exp"]
    try:
        if isinstance(seconds, int | float):
            return datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError) as error:
        raise errors.AccessTokenMalformed("The claim exp is not a time in seconds.") from error
    raise errors.AccessTokenMalformed("The claim exp is not a time in seconds.")


def _refusal_of(error: Exception) -> NotAuthenticated:
    for kind, refusal, detail in _REFUSALS:
        if isinstance(error, kind):
            return refusal(detail)
    return errors.AccessTokenMalformed("The token lacks a claim or holds one that cannot be read.")
