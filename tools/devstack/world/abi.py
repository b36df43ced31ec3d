"""Calldata of contract functions."""

from collections.abc import Sequence
from typing import Any

from eth_abi.abi import encode
from eth_utils.crypto import keccak


def selector(signature: str) -> bytes:
    """Return the selector of a function such as `initialize(address)`."""
    return bytes(keccak(text=signature)[:4])


def calldata(signature: str, *arguments: Any) -> bytes:
    """Return the calldata of a function whose argument types are all simple."""
    types = signature[signature.index("(") + 1 : -1]
    return selector(signature) + encode(types.split(",") if types else [], arguments)


def pairs(entries: Sequence[tuple[bytes, bytes]]) -> tuple[list[bytes], list[bytes]]:
    """Return data keys and data values as the two lists of `setDataBatch`."""
    return [key for key, _ in entries], [value for _, value in entries]
