"""Check signatures in constant time, against each of the live secrets."""

import base64
import hashlib
import hmac
from collections.abc import Callable, Sequence
from urllib.parse import unquote

from earnings.networks.base import PostbackPostponed, PostbackRefused, RawRequest
from earnings.networks.parsing import parameters


def require_match(given: str, *, secrets: Sequence[str], compute: Callable[[bytes], str]) -> None:
    """
    Pass where `compute` makes the given signature of one of the secrets.

    Raises:
        PostbackPostponed: there is no secret; without one nothing is accepted.
        PostbackRefused: none of them made it.
    """
    if not secrets:
        raise PostbackPostponed("no secret is configured")
    matches = [hmac.compare_digest(compute(secret.encode()).encode(), given.encode()) for secret in secrets]
    if not any(matches):
        raise PostbackRefused("bad signature")


def hex_hmac(algorithm: str, message: bytes) -> Callable[[bytes], str]:
    """Return the function that makes the lower-case hex HMAC of the message."""
    return lambda secret: hmac.new(secret, message, algorithm).hexdigest()


def base64url_hmac(algorithm: str, message: bytes) -> Callable[[bytes], str]:
    """Return the function that makes the URL-safe base64 HMAC of the message, without padding."""
    return lambda secret: unpadded(hmac.new(secret, message, algorithm).digest())


def hex_md5(before: str, after: str = "") -> Callable[[bytes], str]:
    """Return the function that makes the MD5 of text with the secret in it, as some networks still do."""
    return lambda secret: hashlib.md5(
        before.encode() + secret + after.encode(), usedforsecurity=False
    ).hexdigest()


def unpadded(data: bytes) -> str:
    """Return URL-safe base64 without padding."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def signed_url(
    request: RawRequest,
    *,
    name: str,
    secrets: Sequence[str],
    hmac_of: Callable[[bytes], Callable[[bytes], str]],
) -> dict[str, str]:
    """
    Return the parameters before the last one, `name`, which signs the whole address as it was sent.

    Raises:
        PostbackRefused: `name` is not the last parameter, or does not sign the rest.
        PostbackPostponed: there is no secret.
    """
    covered, separator, given = request.query.rpartition(b"&%s=" % name.encode())
    if not separator:
        raise PostbackRefused("no signature at the end")
    message = request.url.encode() + b"?" + covered
    signature = unquote(given.decode("latin-1"))
    require_match(signature, secrets=secrets, compute=hmac_of(message))
    return parameters(covered)
