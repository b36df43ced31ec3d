"""
Verify networks' signatures in constant time.

Proxies between a network and the service may have changed the URL: other percent-encoding, sorted parameters, or a
slash at the path's end. Such forms are tried, too. None of them changes a value, and values are read only from text
that the signature covers.
"""

import base64
import hashlib
import hmac
import itertools
import re
import string
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from urllib.parse import quote, quote_plus, unquote

from earnings.networks.base import PostbackPostponed, PostbackRefused, RawRequest
from earnings.networks.parameters import parameters, split, text_of

_LETTERS_AND_DIGITS = string.ascii_letters + string.digits
# What encoders leave as it is besides letters and digits: RFC 3986, JavaScript, Java, PHP, and stricter ones.
_LEFT_AS_IT_IS = ("-._~", "-._~!*'()", "-._*", "-._", "._~", "")


def require_match(given: str, *, secrets: Sequence[str], compute: Callable[[bytes], str]) -> None:
    """
    Check that `compute` returns the given signature for one of the secrets.

    Raises:
        PostbackPostponed: there is no secret.
        PostbackRefused: no secret matches.
    """
    if not _matches(given, secrets=secrets, compute=compute):
        raise PostbackRefused("bad signature")


def _matches(given: str, *, secrets: Sequence[str], compute: Callable[[bytes], str]) -> bool:
    if not secrets:
        raise PostbackPostponed("no secret is configured")
    signature = given.encode(errors="surrogateescape")
    matches = [hmac.compare_digest(compute(secret.encode()).encode(), signature) for secret in secrets]
    return any(matches)


def hex_hmac(algorithm: str, message: bytes) -> Callable[[bytes], str]:
    return lambda secret: hmac.new(secret, message, algorithm).hexdigest()


def base64url_hmac(algorithm: str, message: bytes) -> Callable[[bytes], str]:
    """Return a function that computes the URL-safe base64 HMAC of the message, without padding."""
    return lambda secret: unpadded(hmac.new(secret, message, algorithm).digest())


def hex_md5(before: str) -> Callable[[bytes], str]:
    """Return a function that computes the MD5 of the text followed by the secret, as some networks do."""
    text = before.encode(errors="surrogateescape")
    return lambda secret: hashlib.md5(text + secret, usedforsecurity=False).hexdigest()


def unpadded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def signed_url(
    request: RawRequest,
    *,
    name: str,
    secrets: Sequence[str],
    hmac_of: Callable[[bytes], Callable[[bytes], str]],
    template: str = "",
) -> dict[str, str]:
    """
    Return the other parameters of a URL whose parameter `name` signs everything before it.

    The URL is tried as received, then in its other forms. `template` has the network's order of parameters.

    Raises:
        PostbackRefused: `name` does not sign the rest; if a proxy's change is recognised, the reason names it.
        PostbackPostponed: there is no secret.
    """
    parts = request.query.split(b"&")
    given = [part for part in parts if part.startswith(name.encode() + b"=")]
    if len(given) != 1:
        raise PostbackRefused("the signature is missing at the end" if not given else "repeated parameter")
    place = parts.index(given[0])
    covered = b"&".join([*parts[:place], *parts[place + 1 :]])
    signature = text_of(given[0].partition(b"=")[2], plus=False)
    names = template.split("&") if template else []
    order = [part.partition("=")[0] for part in names]
    for message in _forms(request.url, covered, order):
        if _matches(signature, secrets=secrets, compute=hmac_of(message)):
            return parameters(covered)
    raise PostbackRefused("bad signature" + ("" if place == len(parts) - 1 else _NOT_LAST))


_NOT_LAST = ", and it is not the last parameter: something on the way, like a CDN, adds or sorts parameters"


def _forms(url: str, query: bytes, order: Sequence[str]) -> Iterator[bytes]:
    """Yield the URL as received, then in the other forms that the network may have signed."""
    queries = [query, *_in_other_encodings(query)]
    parts = [part for part in query.split(b"&") if part]
    parts.sort(key=lambda part: _place(part, order))
    ordered = b"&".join(parts)
    if ordered != query:
        queries += [ordered, *_in_other_encodings(ordered)]
    urls = (url, url.removesuffix("/") if url.endswith("/") else f"{url}/")
    for address, text in itertools.product(urls, dict.fromkeys(queries)):
        yield address.encode() + b"?" + text


def _in_other_encodings(query: bytes) -> Iterator[bytes]:
    """Yield the names and values in each percent form that the network may have signed, without empty parameters."""
    pairs = list(split(query))
    for quoted, left in itertools.product((quote, quote_plus), _LEFT_AS_IT_IS):
        encode = partial(_encoded, quoted=quoted, left=left)
        # Networks write the names of parameters, such as `transaction_id`, as they are.
        text = "&".join(f"{_encoded(name, quoted=quoted)}={encode(value)}" for name, value in pairs)
        yield text.encode()
        yield _HEX_DIGITS.sub(lambda digits: digits[0].lower(), text).encode()


_HEX_DIGITS = re.compile("%[0-9A-F]{2}")


def _encoded(text: str, *, quoted: Callable[..., str], left: str = _LEFT_AS_IT_IS[0]) -> str:
    # Python's functions leave `-._~` in any case.
    strict = {ord(letter): f"%{ord(letter):02X}" for letter in "-._~" if letter not in left}
    return quoted(text, safe=_LETTERS_AND_DIGITS + left, errors="surrogateescape").translate(strict)


def _place(part: bytes, order: Sequence[str]) -> int:
    name = unquote(part.partition(b"=")[0].decode("latin-1"))
    return order.index(name) if name in order else len(order)
