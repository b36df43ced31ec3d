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
from typing import Any

from eth_abi.abi import is_encodable_type
from eth_abi.grammar import normalize
from eth_utils.abi import function_signature_to_4byte_selector

from gateway.chain.functions import WELL_KNOWN
from sponsors.rules.calls import NO_FUNCTION

MOST_FUNCTIONS = 50
_OF_PROFILES = ("setData(bytes32,bytes)", "setDataBatch(bytes32[],bytes[])")
_SELECTOR = re.compile(r"0x[0-9a-f]{8}", re.IGNORECASE)
_SIGNATURE = re.compile(r"(?:function\s+)?([A-Za-z_$][\w$]*)\s*(\(.*)", re.DOTALL)
_NAME = re.compile(r"[A-Za-z_$][\w$]*")
_MOST_DEPTH = 8


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
    """Return the canonical types in the text after a function's name; ignores all after their closing bracket."""
    inside, _ = _bracketed(arguments)
    types: str = normalize(f"({','.join(map(_type, _split(inside)))})")  # type: ignore[no-untyped-call]
    if types != "()" and not is_encodable_type(types):
        raise NotAFunction(f"“{arguments[:60]}” is no list of types such as (address,uint256).")
    return types


def _type(argument: str, depth: int = 0) -> str:
    """Return the type of an argument such as `address to` or `(uint256 a, bytes b)[] items`."""
    argument = argument.strip().removeprefix("tuple")
    if not argument.startswith("("):
        return (argument.split() or [""])[0]
    if depth > _MOST_DEPTH:
        raise NotAFunction("The types are nested too deeply.")
    inside, rest = _bracketed(argument)
    array = re.match(r"(\[\d*\])*", rest)
    return f"({','.join(_type(part, depth + 1) for part in _split(inside))}){array[0] if array else ''}"


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
        signatures = [f"{each['name']}({','.join(map(_json_type, each['inputs']))})" for each in functions]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise NotAFunction("The text is no entry of an ABI with a name and inputs.") from error
    if not 1 <= len(signatures) <= MOST_FUNCTIONS:
        raise NotAFunction(f"An ABI may have 1 to {MOST_FUNCTIONS} functions here.")
    return [_checked(each) for each in signatures]


def _json_type(argument: Any) -> str:
    kind = str(argument["type"])
    if not kind.startswith("tuple"):
        return kind
    return f"({','.join(map(_json_type, argument['components']))}){kind.removeprefix('tuple')}"


def _checked(signature: str) -> str:
    written = _SIGNATURE.fullmatch(signature)
    if written is None:
        raise NotAFunction(f"“{signature[:60]}” is no function of an ABI.")
    return written[1] + _types(written[2])
