"""
The contracts that the service calls: their ABI, calldata and errors.

This module encodes the calls that relay calls wait for, because web3.py's contract objects take a hundred times as
long. Tests compare both on random values.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from eth_abi.abi import decode, encode
from eth_abi.exceptions import DecodingError
from eth_typing import ABI
from eth_utils.abi import (
    event_abi_to_log_topic,
    function_abi_to_4byte_selector,
    function_signature_to_4byte_selector,
)

from gateway.chain import errors
from gateway.common.errors import DomainError
from gateway.common.fields import checksum
from signer.contracts import RELAY_CALL_HEAD


def _components(text: str, *, indexed: bool | None = None) -> list[dict[str, Any]]:
    """Return the JSON form of parameters written as in Solidity: "address from, uint128 channelId"."""
    parts = [parameter.split() for parameter in text.split(",") if parameter]
    marks = {} if indexed is None else {"indexed": indexed}
    return [{"type": kind, "name": "".join(name), **marks} for kind, *name in parts]


def _function(name: str, inputs: str, outputs: str) -> dict[str, Any]:
    return {
        "type": "function",
        "name": name,
        "inputs": _components(inputs),
        "outputs": _components(outputs),
        "stateMutability": "payable" if name == "executeRelayCall" else "view",
    }


# The functions that the service uses of a profile (LSP-0) and of its key manager (LSP-6, LSP-20, LSP-25).
CONTRACT_ABI = cast(
    "ABI",
    [
        _function(
            "executeRelayCall",
            "bytes signature, uint256 nonce, uint256 validityTimestamps, bytes payload",
            "bytes",
        ),
        _function("getNonce", "address from, uint128 channelId", "uint256"),
        _function(
            "lsp20VerifyCall",
            "address requestor, address targetContract, address caller, uint256 msgValue, bytes callData",
            "bytes4",
        ),
        _function("target", "", "address"),
        _function("getData", "bytes32 dataKey", "bytes dataValue"),
        _function("isValidSignature", "bytes32 dataHash, bytes signature", "bytes4 returnedStatus"),
        _function("owner", "", "address"),
        {
            "type": "event",
            "name": "PermissionsVerified",
            "anonymous": False,
            "inputs": _components("address signer, uint256 value, bytes4 selector", indexed=True),
        },
    ],
)
_BY_NAME: dict[str, Any] = {item["name"]: item for item in cast("list[dict[str, Any]]", CONTRACT_ABI)}


def _selector(name: str) -> bytes:
    return function_abi_to_4byte_selector(_BY_NAME[name])


# `execute` of a profile (ERC-725X).
EXECUTE = bytes.fromhex("44c028fe")
EXECUTE_RELAY_CALL = _selector("executeRelayCall")
GET_DATA = _selector("getData")
GET_NONCE = _selector("getNonce")
IS_VALID_SIGNATURE = _selector("isValidSignature")
LSP20_VERIFY_CALL = _selector("lsp20VerifyCall")
# The beginning of a successful response; one byte of flags follows.
LSP20_VERIFIED = LSP20_VERIFY_CALL[:3]
OWNER = _selector("owner")
TARGET = _selector("target")
# LSP-14 transfers ownership in two steps; the new owner makes the second one.
PENDING_OWNER, ACCEPT_OWNERSHIP, TRANSFER_OWNERSHIP = (
    function_signature_to_4byte_selector(signature)
    for signature in ("pendingOwner()", "acceptOwnership()", "transferOwnership(address)")
)
# Balances of tokens (LSP-7, LSP-8, ERC-20, ERC-721), and follows (LSP-26).
BALANCE_OF, IS_FOLLOWING = (
    function_signature_to_4byte_selector(signature)
    for signature in ("balanceOf(address)", "isFollowing(address,address)")
)
# The contract of LSP-26. It has the same address on every chain.
FOLLOWER_SYSTEM = "0xf01103E5a9909Fc0DBe8166dA7085e0285daDDcA"
PERMISSIONS_VERIFIED_TOPIC = "0x" + event_abi_to_log_topic(_BY_NAME["PermissionsVerified"]).hex()

_WORD, _ADDRESS_BYTES = 32, 20
_RELAY_CALL_TYPES = ["bytes", "uint256", "uint256", "bytes"]


def _uint(number: int) -> bytes:
    return number.to_bytes(_WORD, "big")


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % _WORD)


def encode_execute_relay_call(*, signature: bytes, nonce: int, validity: int, payload: bytes) -> bytes:
    """Return the calldata of `executeRelayCall` for a key manager (LSP-25)."""
    signature_words, payload_words = _padded(signature), _padded(payload)
    return b"".join(
        (
            EXECUTE_RELAY_CALL,
            RELAY_CALL_HEAD,
            _uint(nonce),
            _uint(validity),
            _uint(4 * _WORD + _WORD + len(signature_words)),
            _uint(len(signature)),
            signature_words,
            _uint(len(payload)),
            payload_words,
        )
    )


def relay_call_bytes(payload: bytes) -> int:
    """Return the size of the calldata of `executeRelayCall` with this payload."""
    return (
        len(EXECUTE_RELAY_CALL) + 4 * _WORD + _WORD + len(_padded(bytes(65))) + _WORD + len(_padded(payload))
    )


def encode_execute(*, to: str, value_wei: int, data: bytes) -> bytes:
    """Return the calldata with which a profile calls `to` (ERC-725X `execute`, operation CALL)."""
    head = _uint(0) + _uint(int(to, 16)) + _uint(value_wei) + _uint(4 * _WORD)
    return EXECUTE + head + _uint(len(data)) + _padded(data)


def encode_get_nonce(*, controller: str, channel: int) -> bytes:
    """Return the calldata of a key manager's `getNonce` (LSP-25)."""
    return GET_NONCE + _uint(int(controller, 16)) + _uint(channel)


def encode_balance_of(*, holder: str) -> bytes:
    """Return the calldata of a token's `balanceOf`."""
    return BALANCE_OF + _uint(int(holder, 16))


def encode_is_following(*, follower: str, followed: str) -> bytes:
    """Return the calldata of `isFollowing` (LSP-26)."""
    return IS_FOLLOWING + _uint(int(follower, 16)) + _uint(int(followed, 16))


def encode_lsp20_verify_call(*, profile: str, controller: str, payload: bytes) -> bytes:
    """Return the calldata of a key manager's `lsp20VerifyCall` for this controller and payload (LSP-20)."""
    types = ["address", "address", "address", "uint256", "bytes"]
    return LSP20_VERIFY_CALL + encode(types, [profile, profile, controller, 0, payload])


def encode_is_valid_signature(*, digest: bytes, signature: bytes) -> bytes:
    """Return the calldata of ERC-1271's `isValidSignature`."""
    return IS_VALID_SIGNATURE + encode(["bytes32", "bytes"], [digest, signature])


def decode_execute_relay_call(calldata: bytes) -> tuple[bytes, int, int, bytes] | None:
    """Return (signature, nonce, validity, payload), or None if the calldata is not `executeRelayCall`."""
    if not calldata.startswith(EXECUTE_RELAY_CALL):
        return None
    values = _decoded(_RELAY_CALL_TYPES, calldata[4:])
    return None if values is None else (values[0], values[1], values[2], values[3])


def decode_address(returned: bytes) -> str | None:
    """Decode the address that a contract returned; None if it returned anything else."""
    if len(returned) != _WORD or any(returned[:-_ADDRESS_BYTES]):
        return None
    return checksum("0x" + returned[-_ADDRESS_BYTES:].hex())


def decode_number(returned: bytes) -> int | None:
    """Decode the 256-bit number that a contract returned; None if it returned anything else."""
    return int.from_bytes(returned, "big") if len(returned) == _WORD else None


def decode_permissions(returned: bytes) -> int:
    """
    Return the LSP-6 bits in the data that `getData` returned, read as key managers do; 0 if the data does not decode.

    Key managers use the value's first 32 bytes, and pad a shorter value with zeros on the right.
    """
    offset = int.from_bytes(returned[:_WORD], "big")
    length = int.from_bytes(returned[offset : offset + _WORD], "big")
    value = returned[offset + _WORD : offset + _WORD + length]
    if len(returned) < 2 * _WORD or len(value) != length:
        return 0
    return int.from_bytes(value[:_WORD].ljust(_WORD, b"\0"), "big")


def is_accepted_signature(returned: bytes) -> bool:
    """Return whether `isValidSignature` returned ERC-1271's magic value."""
    return len(returned) == _WORD and returned.startswith(IS_VALID_SIGNATURE)


def _decoded(types: Sequence[str], body: bytes) -> tuple[Any, ...] | None:
    """Return the decoded values, or None if the bytes do not encode these types."""
    try:
        # Solidity accepts padding other than zeros, so accept it here, too.
        return decode(types, body, strict=False)
    except (DecodingError, OverflowError, ValueError):
        return None


# Any contract may write these texts, so they are cut at this length.
_REASON_CHARACTERS = 256
_REVERT_DATA_BYTES = 260
_PANICS = {
    0x01: "assertion failed",
    0x11: "arithmetic overflow",
    0x12: "division by zero",
    0x21: "invalid enum value",
    0x31: "pop of an empty array",
    0x32: "array index out of bounds",
    0x41: "out of memory",
    0x51: "call of an uninitialised function",
}
_ERROR, _PANIC = map(function_signature_to_4byte_selector, ("Error(string)", "Panic(uint256)"))


@dataclass(frozen=True, slots=True)
class _ContractError:
    """A Solidity error with its own exception class; parameters without a name are not reported."""

    refusal: type[errors.CallRefused]
    types: tuple[str, ...]
    names: tuple[str, ...]

    @property
    def selector(self) -> bytes:
        name = self.refusal.contract_error.split("(")[0]
        return function_signature_to_4byte_selector(f"{name}({','.join(self.types)})")

    def decoded(self, body: bytes) -> DomainError | None:
        """Return the error with its parameters as members; None if the body does not encode them."""
        values = _decoded(self.types, body)
        if values is None:
            return None
        fields = zip(self.names, self.types, values, strict=True)
        members: dict[str, Any] = {name: _shown(kind, value) for name, kind, value in fields if name}
        return self.refusal(self.refusal.advice.format(**members), **members)


def _shown(kind: str, value: Any) -> str:
    if kind == "address":
        return checksum(value)
    return "0x" + value.hex() if isinstance(value, bytes) else str(value)


def _contract_error(refusal: type[errors.CallRefused]) -> _ContractError:
    parameters = _components(refusal.contract_error.partition("(")[2].rstrip(")"))
    types, names = ([parameter[member] for parameter in parameters] for member in ("type", "name"))
    return _ContractError(refusal, tuple(types), tuple(names))


CONTRACT_ERRORS: Mapping[bytes, _ContractError] = {
    error.selector: error
    for error in map(_contract_error, errors.CallRefused.__subclasses__())
    if error.refusal.contract_error
}
PROFILE_ERRORS: Mapping[bytes, str] = {
    function_signature_to_4byte_selector(signature): signature.split("(")[0]
    for signature in errors.PROFILE_ERRORS
}


def refusal_from_revert(data: bytes) -> DomainError:
    """Return the error for a simulated relay call that reverted with `data`."""
    selector, body = data[:4], data[4:]
    error = CONTRACT_ERRORS.get(selector)
    refusal = error.decoded(body) if error else None
    if refusal is not None:
        return refusal
    revert_data = "0x" + data[:_REVERT_DATA_BYTES].hex()
    if selector in PROFILE_ERRORS:
        name = PROFILE_ERRORS[selector]
        return errors.ProfileRefused(
            f"The profile refuses the call: {name}.", reason=name, revertData=revert_data
        )
    reason = _reason(data)
    if reason:
        detail = f"The called contract reverts: {reason}."
    elif data:
        detail = f"The called contract reverts with a custom error, 0x{selector.hex()}."
    else:
        detail = (
            "The call reverts without a reason. A malformed payload or too little gas can also cause this."
        )
    return errors.TargetReverted(detail, reason=reason or None, revertData=revert_data)


def _reason(data: bytes) -> str:
    """Return the text of Solidity's Error(string) or Panic(uint256); empty for any other data."""
    if data[:4] == _ERROR:
        values = _decoded(["bytes"], data[4:])
        text = values[0].decode(errors="replace") if values else ""
        return "".join(letter for letter in text if letter.isprintable())[:_REASON_CHARACTERS].rstrip(". ")
    if data[:4] == _PANIC:
        values = _decoded(["uint256"], data[4:])
        return _PANICS.get(values[0], f"panic {values[0]:#x}") if values else ""
    return ""
