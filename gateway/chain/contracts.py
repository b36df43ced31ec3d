"""
The ABI of the contracts we talk to: selectors and calldata.

Selectors are written out, so that readers can search for what a trace shows; a test
derives each from its signature.
"""

from eth_abi.abi import encode

from gateway.chain.abi import decoded
from gateway.chain.reverts import refusal_from_revert

__all__ = [
    "EXECUTE_RELAY_CALL",
    "GET_DATA",
    "GET_NONCE",
    "IS_VALID_SIGNATURE",
    "LSP20_VERIFY_CALL",
    "OWNER",
    "PERMISSIONS_VERIFIED_TOPIC",
    "TARGET",
    "decode_execute_relay_call",
    "encode_execute_relay_call",
    "encode_get_nonce",
    "encode_is_valid_signature",
    "encode_lsp20_verify_call",
    "refusal_from_revert",
]

EXECUTE_RELAY_CALL = bytes.fromhex("4c8a4e74")
GET_DATA = bytes.fromhex("54f6127f")
GET_NONCE = bytes.fromhex("b44581d9")
IS_VALID_SIGNATURE = bytes.fromhex("1626ba7e")
LSP20_VERIFY_CALL = bytes.fromhex("de928f14")
OWNER = bytes.fromhex("8da5cb5b")
TARGET = bytes.fromhex("d4b83992")

# PermissionsVerified(address indexed signer, uint256 indexed value, bytes4 indexed selector) of LSP-6.
PERMISSIONS_VERIFIED_TOPIC = "0xc0a62328f6bf5e3172bb1fcb2019f54b2c523b6a48e3513a2298fbf0150b781e"

_RELAY_CALL_TYPES = ["bytes", "uint256", "uint256", "bytes"]


def encode_execute_relay_call(*, signature: bytes, nonce: int, validity: int, payload: bytes) -> bytes:
    """Return the calldata of `executeRelayCall` for a key manager (LSP-25)."""
    return EXECUTE_RELAY_CALL + encode(_RELAY_CALL_TYPES, [signature, nonce, validity, payload])


def encode_is_valid_signature(*, digest: bytes, signature: bytes) -> bytes:
    """Return the calldata of ERC-1271's `isValidSignature`."""
    return IS_VALID_SIGNATURE + encode(["bytes32", "bytes"], [digest, signature])


def encode_get_nonce(*, controller: str, channel: int) -> bytes:
    """Return the calldata of a key manager's `getNonce` (LSP-25)."""
    return GET_NONCE + encode(["address", "uint128"], [controller, channel])


def encode_lsp20_verify_call(*, profile: str, controller: str, payload: bytes) -> bytes:
    """Return the calldata that asks a key manager whether the controller may call the profile so (LSP-20)."""
    types = ["address", "address", "address", "uint256", "bytes"]
    return LSP20_VERIFY_CALL + encode(types, [profile, profile, controller, 0, payload])


def decode_execute_relay_call(calldata: bytes) -> tuple[bytes, int, int, bytes] | None:
    """Return (signature, nonce, validity, payload), or None if the calldata is not `executeRelayCall`."""
    if not calldata.startswith(EXECUTE_RELAY_CALL):
        return None
    found = decoded(_RELAY_CALL_TYPES, calldata[4:])
    return None if found is None else (found[0], found[1], found[2], found[3])
