"""Read ABI-encoded answers of foreign contracts, which may be anything."""

from collections.abc import Sequence
from typing import Any

from eth_abi.abi import decode
from eth_abi.exceptions import DecodingError


def decoded(types: Sequence[str], body: bytes) -> tuple[Any, ...] | None:
    """Return the values, or None if the bytes do not encode these types."""
    try:
        # Solidity does not insist on zero padding, so neither do we.
        return decode(types, body, strict=False)
    except (DecodingError, OverflowError, ValueError):
        return None
