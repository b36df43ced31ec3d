"""
Functions as people write them, and their 4-byte selectors.

    0x760d9bba                                      a selector
    transfer(address from, address to, uint256 x)   a signature, with or without the names of its arguments
    follow                                          the name of a well-known function: all of its forms
    {"type": "function", "name": "mint", …}         an entry of an ABI, or a list of them
"""

import json
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from eth_abi.abi import is_encodable_type
from eth_abi.grammar import normalize
from eth_utils.abi import function_signature_to_4byte_selector

from gateway.chain.functions import WELL_KNOWN
from sponsors.rules.calls import NO_FUNCTION

MOST_FUNCTIONS = 50
_OF_PROFILES = ("setData(bytes32,bytes)", "setDataBatch(bytes32[],bytes[])")
_SELECTOR = re.compile(r"0x[0-9a-f]{8}", re.IGNORECASE)
_SIGNATURE = re.compile(r"(?:function\s+)?([A-Za-z_$][\w$]*)\s*(\(.*)", re.DOTALL | re.ASCII)
_NAME = re.compile(r"[A-Za-z_$][\w$]*", re.ASCII)
_BASE = re.compile(r"[a-z]{1,8}[0-9x]{0,7}")
_ARRAY = re.compile(r"(\[([1-9]\d{0,9})?\])*", re.ASCII)
_AFTER = re.compile(r";?|\s.*", re.DOTALL)
_MOST_DEPTH = 4


class NotAFunction(Exception):
    """The text is no function; the message says what is expected, as a sentence."""


def selectors_of(text: str) -> tuple[bytes, ...]:
    """
    Return the selectors of the functions that the text names, each once. No text, or 0x, is a transfer of LYX.

    Raises:
        NotAFunction: the text names none.
    """
    text = text.strip()
    if text.lower() in {"", "0x"}:
        return (NO_FUNCTION,)
    if _SELECTOR.fullmatch(text):
        return (bytes.fromhex(text[2:]),)
    if text.startswith(("{", "[")):
        signatures = _signatures_in(text)
    elif (written := _SIGNATURE.fullmatch(text)) is not None:
        signatures = [written[1] + _types(written[2])]
    else:
        signatures = _forms_of(text)
    return tuple(dict.fromkeys(map(function_signature_to_4byte_selector, signatures)))


def _forms_of(name: str) -> list[str]:
    forms = [each for each in (*WELL_KNOWN, *_OF_PROFILES) if each.partition("(")[0] == name]
    if not forms:
        example = f"{name}(address,uint256)" if _NAME.fullmatch(name) else "transfer(address,uint256)"
        raise NotAFunction(
            f"“{name[:60]}” is no well-known function. Write its types too, such as {example}."
        )
    return forms


def _types(arguments: str) -> str:
    """Return the canonical types in the text after a function's name; modifiers may follow their closing bracket."""
    inside, rest = _bracketed(arguments)
    if _AFTER.fullmatch(rest) is None:
        raise NotAFunction(f"“{arguments[:60]}” is no list of types such as (address,uint256).")
    return f"({','.join(map(_type, _split(inside)))})"


def _type(argument: str, depth: int = 1) -> str:
    """Return the type of an argument such as `address to` or `(uint256 a, bytes b)[] items`."""
    argument = argument.strip()
    components = argument.removeprefix("tuple")
    if not components.startswith("("):
        return _plain(argument.partition(" ")[0])
    _require_depth(depth)
    inside, rest = _bracketed(components)
    array, _, _ = rest.partition(" ")
    return f"({','.join(_type(part, depth + 1) for part in _split(inside))}){_array(array)}"


def _plain(text: str) -> str:
    """Return the canonical form of a type that is no tuple."""
    base, bracket, array = text.partition("[")
    canonical = _canonical(base) if _BASE.fullmatch(base) else None
    if canonical is None:
        raise NotAFunction(f"“{text[:60]}” is no type such as address or uint256.")
    return canonical + _array(bracket + array)


def _array(text: str) -> str:
    if _ARRAY.fullmatch(text) is None:
        raise NotAFunction(f"“{text[:60]}” is no array such as [] or [2].")
    return text


def _require_depth(depth: int) -> None:
    if depth > _MOST_DEPTH:
        raise NotAFunction("The types are nested too deeply.")


# Parsing takes long, and callers send many.
@lru_cache(maxsize=4096)
def _canonical(base: str) -> str | None:
    canonical: str = normalize(base)  # type: ignore[no-untyped-call]
    return canonical if is_encodable_type(canonical) else None


def _bracketed(text: str) -> tuple[str, str]:
    """Split a text that begins with a bracket into what is inside it, and what follows."""
    depth = 0
    for place, letter in enumerate(text):
        depth += {"(": 1, ")": -1}.get(letter, 0)
        if depth == 0:
            return text[1:place], text[place + 1 :]
    raise NotAFunction("A bracket is not closed.")


def _split(text: str) -> Iterator[str]:
    """Yield the parts between the commas outside of brackets."""
    depth, part = 0, ""
    for letter in text:
        depth += {"(": 1, ")": -1}.get(letter, 0)
        if letter == "," and depth == 0:
            yield part
            part = ""
        else:
            part += letter
    if text.strip():
        yield part


def _signatures_in(text: str) -> list[str]:
    """Return the signatures of the functions in an ABI, or in one entry of it."""
    try:
        content: Any = json.loads(text)
        entries = content if isinstance(content, list) else [content]
        functions = [each for each in entries if each.get("type", "function") == "function"]
        signatures = [f"{_name(each)}({','.join(map(_json_type, each['inputs']))})" for each in functions]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise NotAFunction("The text is no entry of an ABI with a name and inputs.") from error
    if not 1 <= len(signatures) <= MOST_FUNCTIONS:
        raise NotAFunction(f"An ABI may have 1 to {MOST_FUNCTIONS} functions here.")
    return signatures


def _name(function: Any) -> str:
    name: str = function["name"]
    if _NAME.fullmatch(name) is None:
        raise NotAFunction(f"“{name[:60]}” is no name of a function.")
    return name


def _json_type(argument: Any, depth: int = 1) -> str:
    kind: str = argument["type"]
    if not kind.startswith("tuple"):
        return _plain(kind)
    _require_depth(depth)
    components = (_json_type(each, depth + 1) for each in argument["components"])
    return f"({','.join(components)}){_array(kind.removeprefix('tuple'))}"
