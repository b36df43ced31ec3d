"""
Strict reading of calldata: only the canonical ABI encoding is accepted.

A decoder that follows arbitrary offsets may see another call than the one that the contract makes, and can be made to
copy the same bytes many times. Here each offset must point to the end of the bytes read so far, so every byte is read
once, and calldata has exactly one meaning. ethers, viem and web3 encode canonically.
"""

from collections.abc import Sequence
from typing import Any

from eth_utils.abi import function_signature_to_4byte_selector

_WORD = 32
_ADDRESS_LIMIT = 2**160
SELECTOR_BYTES = 4


class NotCanonical(Exception):
    """The bytes are not the canonical encoding of the arguments."""


class Function:
    """A function by its signature, such as `execute(uint256,address,uint256,bytes)`, and its 4-byte selector."""

    def __init__(self, signature: str) -> None:
        self.selector = function_signature_to_4byte_selector(signature)
        self._types = tuple(signature.partition("(")[2].rstrip(")").split(","))

    def arguments(self, calldata: bytes) -> tuple[Any, ...]:
        """
        Return the arguments in order; addresses are numbers.

        Raises:
            NotCanonical: the bytes after the selector are not the canonical encoding of these types.
        """
        return _arguments(self._types, calldata[SELECTOR_BYTES:])


def _arguments(types: Sequence[str], body: bytes) -> tuple[Any, ...]:
    values: list[Any] = []
    end = _WORD * len(types)
    for place, kind in enumerate(types):
        word = _number(body, _WORD * place)
        if kind in {"uint256", "address"}:
            values.append(_checked(word, kind))
            continue
        if word != end:
            raise NotCanonical
        value, end = _dynamic(kind, body, end)
        values.append(value)
    if end != len(body):
        raise NotCanonical
    return tuple(values)


def _dynamic(kind: str, body: bytes, start: int) -> tuple[Any, int]:
    """Return the value that begins at `start`, and where its encoding ends."""
    if kind == "bytes":
        return _bytes(body, start)
    count, first = _number(body, start), start + _WORD
    if first + count * _WORD > len(body):
        raise NotCanonical
    words = [_number(body, first + place * _WORD) for place in range(count)]
    end = first + count * _WORD
    if kind != "bytes[]":
        return [_checked(word, kind.removesuffix("[]")) for word in words], end
    items: list[bytes] = []
    for offset in words:
        if first + offset != end:
            raise NotCanonical
        item, end = _bytes(body, end)
        items.append(item)
    return items, end


def _bytes(body: bytes, start: int) -> tuple[bytes, int]:
    length, first = _number(body, start), start + _WORD
    end = first + length + -length % _WORD
    if end > len(body) or any(body[first + length : end]):
        raise NotCanonical
    return body[first : first + length], end


def _number(body: bytes, start: int) -> int:
    word = body[start : start + _WORD]
    if len(word) != _WORD:
        raise NotCanonical
    return int.from_bytes(word, "big")


def _checked(word: int, kind: str) -> int:
    if kind == "address" and word >= _ADDRESS_LIMIT:
        raise NotCanonical
    return word
