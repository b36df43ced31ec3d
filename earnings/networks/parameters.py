"""Parse the signed parameters of a request, and verify signatures in constant time."""

import base64
import hashlib
import hmac
import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any, TypeVar
from urllib.parse import parse_qsl, unquote

from earnings.models import PostbackKind
from earnings.networks.base import (
    PostbackEvent,
    PostbackPostponed,
    PostbackRefused,
    RawRequest,
    SignedFields,
)

_NUMBER = re.compile(r"-?[0-9]{1,12}(\.[0-9]{1,12})?", re.ASCII)
_IDENTIFIER = re.compile(r"[\x21-\x7e]{1,200}")
_MAX_PARAMETERS = 100
_Value = TypeVar("_Value")


def parameters(query: bytes) -> dict[str, str]:
    """
    Return the decoded parameters of a raw query.

    Raises:
        PostbackRefused: a name is duplicate, or the bytes are not a UTF-8 query.
    """
    try:
        pairs = parse_qsl(
            query.decode("ascii"),
            keep_blank_values=True,
            strict_parsing=bool(query),
            errors="strict",
            max_num_fields=_MAX_PARAMETERS,
        )
    except ValueError as error:
        raise PostbackRefused("unreadable query") from error
    return without_repeats(pairs)


def without_repeats(pairs: list[tuple[str, _Value]]) -> dict[str, _Value]:
    """Return the pairs by name; refuse duplicate names, because either value could be meant."""
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise PostbackRefused("repeated parameter")
    return fields


def identifier(fields: SignedFields, name: str) -> str:
    """Return an id of 1 to 200 printable characters without spaces."""
    text = fields.get(name, "")
    if not _IDENTIFIER.fullmatch(text):
        raise PostbackRefused(f"no usable {name}")
    return text


def number(fields: SignedFields, name: str) -> Decimal:
    """Return a decimal number; exponents, infinities and plus signs are refused."""
    text = fields.get(name, "")
    if not is_number(text):
        raise PostbackRefused(f"no usable {name}")
    return Decimal(text)


def is_number(text: str) -> bool:
    """Return whether it is a plain number with at most twelve digits before and after the point."""
    return _NUMBER.fullmatch(text) is not None


def optional_number(fields: SignedFields, name: str) -> Decimal | None:
    return number(fields, name) if fields.get(name) else None


def flag(fields: SignedFields, name: str) -> bool:
    """Return whether it is `true`; a missing value is false."""
    value = fields.get(name) or "false"
    if value not in {"true", "false"}:
        raise PostbackRefused(f"no usable {name}")
    return value == "true"


def kind_of(amount: Decimal) -> PostbackKind:
    """Return the kind by the amount's sign: credit or reversal; zero is information only."""
    if amount == 0:
        return PostbackKind.INFO
    return PostbackKind.CREDIT if amount > 0 else PostbackKind.REVERSAL


def event_of(
    fields: SignedFields, *, id_: str, user: str, amount: str, kind: PostbackKind | None = None, **others: Any
) -> PostbackEvent:
    """Return the event of the parameters with these names; the default `kind` follows from the amount's sign."""
    external_id, value = identifier(fields, id_), number(fields, amount)
    return PostbackEvent(
        kind=kind or kind_of(value),
        external_id=external_id,
        user_ref=fields.get(user, ""),
        amount=value,
        **others,
    )


# A user's reference at a network: 32 hex digits.
REFERENCE_LENGTH = 32
_REFERENCE = re.compile(r"[0-9a-f]{32}", re.ASCII)


def is_reference(text: str) -> bool:
    return _REFERENCE.fullmatch(text) is not None


def require_reference(text: str) -> None:
    """
    Check that the text has the form of a reference.

    Raises:
        PostbackRefused: it does not.
    """
    if not is_reference(text):
        raise PostbackRefused("no usable user reference")


def require_match(given: str, *, secrets: Sequence[str], compute: Callable[[bytes], str]) -> None:
    """
    Check that `compute` returns the given signature for one of the secrets.

    Raises:
        PostbackPostponed: there is no secret.
        PostbackRefused: no secret matches.
    """
    if not secrets:
        raise PostbackPostponed("no secret is configured")
    matches = [hmac.compare_digest(compute(secret.encode()).encode(), given.encode()) for secret in secrets]
    if not any(matches):
        raise PostbackRefused("bad signature")


def hex_hmac(algorithm: str, message: bytes) -> Callable[[bytes], str]:
    return lambda secret: hmac.new(secret, message, algorithm).hexdigest()


def base64url_hmac(algorithm: str, message: bytes) -> Callable[[bytes], str]:
    """Return a function that computes the URL-safe base64 HMAC of the message, without padding."""
    return lambda secret: unpadded(hmac.new(secret, message, algorithm).digest())


def hex_md5(before: str) -> Callable[[bytes], str]:
    """Return a function that computes the MD5 of the text followed by the secret, as some networks do."""
    return lambda secret: hashlib.md5(before.encode() + secret, usedforsecurity=False).hexdigest()


def unpadded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def signed_url(
    request: RawRequest,
    *,
    name: str,
    secrets: Sequence[str],
    hmac_of: Callable[[bytes], Callable[[bytes], str]],
) -> dict[str, str]:
    """
    Return the parameters before the last one, `name`, which signs the whole URL as sent.

    Raises:
        PostbackRefused: `name` is not the last parameter, or does not sign the rest.
        PostbackPostponed: there is no secret.
    """
    covered, separator, given = request.query.rpartition(b"&%s=" % name.encode())
    if not separator:
        raise PostbackRefused("the signature is missing at the end")
    message = request.url.encode() + b"?" + covered
    signature = unquote(given.decode("latin-1"))
    require_match(signature, secrets=secrets, compute=hmac_of(message))
    return parameters(covered)
