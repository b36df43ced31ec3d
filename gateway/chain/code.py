"""Which code an account runs: the target of a minimal proxy (ERC-1167), or the code's own hash."""

from eth_hash.auto import keccak

from gateway.common.fields import checksum

_BEFORE = bytes.fromhex("363d3d373d3d3d363d")
_BETWEEN = bytes.fromhex("5af43d82803e903d9160")
_AFTER = bytes.fromhex("57fd5bf3")
_PUSH1, _ADDRESS_BYTES, _JUMP = 0x60, 20, 0x2B


def implementation_of(code: bytes) -> str | None:
    """
    Return the EIP-55 address that a minimal proxy delegates to, or None for any other code.

    A target with leading zero bytes may be pushed without them, which moves the jump
    target. The comparison is exact to the byte, so nothing else can pass.
    """
    width = len(code) - len(proxy_code(b""))
    if not 0 < width <= _ADDRESS_BYTES:
        return None
    start = len(_BEFORE) + 1
    target = code[start : start + width]
    if code != proxy_code(target) or (width < _ADDRESS_BYTES and target[0] == 0):
        return None
    return checksum("0x" + target.rjust(_ADDRESS_BYTES, b"\0").hex())


def proxy_code(target: bytes) -> bytes:
    """Return the minimal proxy's code that pushes these 1 to 20 address bytes."""
    missing = _ADDRESS_BYTES - len(target)
    push, jump = bytes([_PUSH1 + (len(target) or 1) - 1]), bytes([_JUMP - missing])
    return _BEFORE + push + target + _BETWEEN + jump + _AFTER


def code_name(code: bytes) -> str:
    """Return the name that code is vetted by: the address a minimal proxy delegates to, else the code's hash."""
    return implementation_of(code) or code_hash(code)


def code_hash(code: bytes) -> str:
    """Return keccak256 of the code as lower-case 0x-hex."""
    return "0x" + keccak(code).hex()
