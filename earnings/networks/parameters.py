"""Parses the parameters of a request: texts, ids and decimal numbers in the forms that networks send."""

import re
from collections.abc import Iterator
from decimal import Context, Decimal
from typing import Any, TypeVar
from urllib.parse import unquote_to_bytes

from earnings.models import AMOUNT_DIGITS, AMOUNT_PLACES, PostbackKind
from earnings.networks.base import MacroNotReplaced, PostbackEvent, PostbackRefused, SignedFields

# A JSON number, or a plain decimal number. Exponents have few digits, so that no number takes long to compare.
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,6})?", re.ASCII)
_MAX_NUMBER_LENGTH = 400
_EXACT = Context(prec=2 * AMOUNT_DIGITS + _MAX_NUMBER_LENGTH)
_SMALLEST = Decimal(1).scaleb(-AMOUNT_PLACES)
_TOO_LARGE = AMOUNT_DIGITS - AMOUNT_PLACES
_IDENTIFIER = re.compile(r"[\x21-\x7e]{1,200}")
# Macros of networks' dashboards: {id}, {{id}}, ${id}, [ID], [%ID%], %ID%, <id>, #ID#, __ID__.
_NAME = r"[A-Za-z][A-Za-z_.:-]*[0-9]?"
_MACRO = re.compile(
    rf"\{{\s*{_NAME}\s*\}}|\[%?{_NAME}%?\]|<{_NAME}>|^(?:%{_NAME}%|\#{_NAME}\#|__{_NAME}__)$", re.ASCII
)
_MAX_PARAMETERS = 100
_Value = TypeVar("_Value")


def parameters(query: bytes) -> dict[str, str]:
    """
    Return the decoded parameters of a raw query; a name without `=` has an empty value.

    Invalid UTF-8 is kept as surrogates, so that an unused value does not make the request invalid.

    Raises:
        PostbackRefused: a name is duplicate, or there are too many.
    """
    pairs = list(split(query))
    if len(pairs) > _MAX_PARAMETERS:
        raise PostbackRefused(f"more than {_MAX_PARAMETERS} parameters")
    return without_repeats(pairs)


def split(query: bytes) -> Iterator[tuple[str, str]]:
    """Yield the decoded names and values of a raw query, without empty parameters."""
    for part in query.split(b"&"):
        if part:
            name, _, value = part.partition(b"=")
            yield text_of(name), text_of(value)


def text_of(data: bytes, *, plus: bool = True) -> str:
    """Decode a percent-encoded text; `plus` decodes `+` as a space."""
    return unquote_to_bytes(data.replace(b"+", b" ") if plus else data).decode(errors="surrogateescape")


def without_repeats(pairs: list[tuple[str, _Value]]) -> dict[str, _Value]:
    """Return the pairs by name; refuse duplicate names, because either value could be meant."""
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise PostbackRefused("repeated parameter")
    return fields


def identifier(fields: SignedFields, name: str) -> str:
    """
    Return an id of 1 to 200 printable characters without spaces.

    Raises:
        MacroNotReplaced: the value has a macro, so every event would have the same id.
        PostbackRefused: the value has another form.
    """
    text = _without_macro(fields, name)
    if not _IDENTIFIER.fullmatch(text):
        raise PostbackRefused(f"no usable {name}")
    return text


def number(fields: SignedFields, name: str) -> Decimal:
    """
    Return a number that decides about credits, rounded to a stored amount's places; accepts JSON and decimal numbers.

    Raises:
        MacroNotReplaced: the value is a macro.
        PostbackRefused: the value is not a number, or too large to be stored.
    """
    value = _decimal(_without_macro(fields, name))
    if value is None:
        raise PostbackRefused(f"no usable {name}")
    if not _can_be_stored(value):
        raise PostbackRefused(f"{name} is too large")
    return _rounded(value)


def information(fields: SignedFields, name: str) -> Decimal | None:
    """Return a number that is only stored, or None if it is missing or invalid; it never makes a request invalid."""
    value = _decimal(fields.get(name, ""))
    return _rounded(value) if value is not None and _can_be_stored(value) else None


def is_negative(fields: SignedFields, name: str) -> bool:
    """Return whether the value is a number below zero, of any size."""
    value = _decimal(fields.get(name, ""))
    return value is not None and value < 0


def _without_macro(fields: SignedFields, name: str) -> str:
    text = fields.get(name, "")
    if (macro := _MACRO.search(text)) is not None:
        raise MacroNotReplaced(macro=macro[0], name=name)
    return text


def _decimal(text: str) -> Decimal | None:
    text = text.strip()
    if len(text) > _MAX_NUMBER_LENGTH or not _NUMBER.fullmatch(text):
        return None
    return Decimal(text)


def _can_be_stored(value: Decimal) -> bool:
    return not value or value.adjusted() < _TOO_LARGE - 1


def _rounded(value: Decimal) -> Decimal:
    # The default context has too few digits for the largest amounts.
    rounded = value.quantize(_SMALLEST, context=_EXACT)
    return value if rounded == value and "E" not in str(value) else rounded


def flag(fields: SignedFields, name: str) -> bool:
    """Return whether the value is `true` or `1`; a missing value is false."""
    value = (fields.get(name) or "false").lower()
    if value not in {"true", "1", "false", "0"}:
        raise PostbackRefused(f"no usable {name}")
    return value in {"true", "1"}


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
        PostbackRefused: the text has another form.
    """
    if not is_reference(text):
        raise PostbackRefused("no usable user reference")
