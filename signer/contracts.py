"""Contracts that relayers may call: selectors of key managers, and the code of minimal proxies."""

from functools import lru_cache

from eth_hash.auto import keccak
from eth_utils.abi import function_signature_to_4byte_selector
from eth_utils.address import to_checksum_address

EXECUTE_RELAY_CALL = function_signature_to_4byte_selector("executeRelayCall(bytes,uint256,uint256,bytes)")
TARGET = function_signature_to_4byte_selector("target()")
_WORD, _ADDRESS_BYTES = 32, 20
# The offset of the first argument, which begins after the four words of the head.
RELAY_CALL_HEAD = (4 * _WORD).to_bytes(_WORD, "big")


# Minimal proxies (ERC-1167): the code before, between and after the pushed address.
_BEFORE = bytes.fromhex("363d3d373d3d3d363d")
_BETWEEN = bytes.fromhex("5af43d82803e903d9160")
_AFTER = bytes.fromhex("57fd5bf3")
_PUSH1, _JUMP = 0x60, 0x2B


@lru_cache(maxsize=1_024)
def implementation_of(code: bytes) -> str | None:
    """
    Return the EIP-55 address that a minimal proxy delegates to, or None for any other code.

    A target with leading zero bytes may be pushed without them, which moves the jump
    target. Every byte is compared, so no other code passes.
    """
    width = len(code) - len(proxy_code(b""))
    if not 0 < width <= _ADDRESS_BYTES:
        return None
    start = len(_BEFORE) + 1
    target = code[start : start + width]
    if code != proxy_code(target) or (width < _ADDRESS_BYTES and target[0] == 0):
        return None
    return to_checksum_address(target.rjust(_ADDRESS_BYTES, b"\0"))


def proxy_code(target: bytes) -> bytes:
    """Return the minimal proxy's code that pushes these 1 to 20 address bytes."""
    missing = _ADDRESS_BYTES - len(target)
    push, jump = bytes([_PUSH1 + (len(target) or 1) - 1]), bytes([_JUMP - missing])
    return _BEFORE + push + target + _BETWEEN + jump + _AFTER


def code_name(code: bytes) -> str:
    """Return the name by which code is vetted: the address that a minimal proxy delegates to, else the code's hash."""
    return implementation_of(code) or code_hash(code)


def code_hash(code: bytes) -> str:
    """Return keccak256 of the code as lower-case 0x-hex."""
    return "0x" + keccak(code).hex()
