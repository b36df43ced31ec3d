"""Signed webhook bodies, and the ways in which they can be wrong."""

import hashlib
import hmac
import json
import secrets
import time
from dataclasses import dataclass

_TOO_OLD = 3600
WRONGS = ("signature", "body", "secret", "old", "future", "missing", "livemode", "api_version")

_FOREIGN: dict[str, dict[str, object]] = {
    "livemode": {"livemode": True},
    "api_version": {"api_version": "2020-08-27"},
}


@dataclass(frozen=True)
class Letter:
    """What one POST to an endpoint carries."""

    body: bytes
    signature: str | None


def sign(body: bytes, secret: str, moment: int | None = None) -> Letter:
    """Return the body signed as Stripe signs, now by the real clock unless told otherwise."""
    moment = int(time.time()) if moment is None else moment
    digest = hmac.new(secret.encode(), f"{moment}.".encode() + body, hashlib.sha256).hexdigest()
    return Letter(body, f"t={moment},v1={digest}")


def corrupt(body: bytes, secret: str, how: str) -> Letter:
    """Return a letter that no endpoint may accept."""
    now = int(time.time())
    if how == "old":
        return sign(body, secret, now - _TOO_OLD)
    if how == "future":
        return sign(body, secret, now + _TOO_OLD)
    if how in _FOREIGN:
        return sign(json.dumps({**json.loads(body), **_FOREIGN[how]}).encode(), secret)
    if how == "secret":
        return sign(body, f"whsec_{secrets.token_hex(24)}")
    letter = sign(body, secret)
    if how == "body":
        return Letter(_changed(body), letter.signature)
    if how == "missing":
        return Letter(body, None)
    return Letter(body, f"t={now},v1={secrets.token_hex(32)}")


def _changed(body: bytes) -> bytes:
    place = secrets.randbelow(len(body))
    return body[:place] + bytes([body[place] ^ 1]) + body[place + 1 :]
