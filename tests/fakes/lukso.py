"""
What profiles and key managers decide, as the fake chain needs it: the rules of LSP-6 and LSP-25 that matter here.

A refusal is the revert data that the real contracts return.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from eth_abi.abi import decode, encode
from eth_hash.auto import keccak

from gateway.chain.errors import UnrecoverableSignature
from gateway.chain.lsp6 import ALL_PERMISSIONS, Permission
from gateway.chain.lsp25 import RelayCall, relay_digest
from gateway.chain.signatures import recover_address
from gateway.common.fields import checksum
from signer.contracts import proxy_code
from signer.deployments import PERMISSIONS_PREFIX
from tests.fakes.profiles import EXECUTE, SET_DATA

_OWNERSHIP = {bytes.fromhex(selector) for selector in ("f2fde38b", "79ba5097", "715018a6")}
_SET_DATA_BATCH = bytes.fromhex("97902421")
_BATCHES = {_SET_DATA_BATCH: Permission.SETDATA, bytes.fromhex("31858452"): Permission.CALL}
_SUPER = {
    Permission.TRANSFERVALUE: Permission.SUPER_TRANSFERVALUE,
    Permission.CALL: Permission.SUPER_CALL,
    Permission.SETDATA: Permission.SUPER_SETDATA,
}


@dataclass
class ProfileContract:
    """A profile's storage; a credulous one imitates profiles and accepts everything."""

    code: bytes
    owner: str
    pending_owner: str | None = None
    permissions: dict[str, int] = field(default_factory=dict)
    allowed_targets: dict[str, tuple[str, ...]] = field(default_factory=dict)
    data: dict[bytes, bytes] = field(default_factory=dict)
    is_credulous: bool = False

    def permissions_of(self, controller: str) -> int:
        """Return LSP-6 bits."""
        return ALL_PERMISSIONS if self.is_credulous else self.permissions.get(controller, 0)

    def accepts(self, controller: str) -> bool:
        """Return whether a signature of that key counts as the profile's own (ERC-1271)."""
        return self.is_credulous or bool(self.permissions_of(controller) & Permission.SIGN)


@dataclass
class KeyManagerContract:
    """A key manager's storage: whose it is, and how many calls each controller made in each channel."""

    code: bytes
    target: str
    sequences: dict[tuple[str, int], int] = field(default_factory=dict)

    def relay_nonce(self, controller: str, channel: int) -> int:
        """Return what `getNonce` returns."""
        return channel << 128 | self.sequences.get((controller, channel), 0)


def proxy_of(implementation: str) -> bytes:
    """Return the code of a minimal proxy (ERC-1167) in front of the implementation."""
    return proxy_code(bytes.fromhex(implementation[2:]))


def custom_error(signature: str, *arguments: Any) -> bytes:
    """Return the revert data of a Solidity error such as `NoPermissionsSet(address)`."""
    types = signature[signature.index("(") + 1 : -1]
    return keccak(signature.encode())[:4] + encode(types.split(",") if types else [], arguments)


def signer_of(*, chain_id: int, key_manager: str, call: RelayCall) -> str:
    """Return the address that the key manager recovers; a random one where there is none."""
    digest = relay_digest(
        chain_id=chain_id,
        key_manager=key_manager,
        relay_nonce=call.relay_nonce,
        validity=call.validity,
        payload=call.payload,
    )
    try:
        return recover_address(digest, call.signature)
    except UnrecoverableSignature:
        return "0x" + "00" * 20


def relay_refusal(
    *, manager: KeyManagerContract, signer: str, call: RelayCall, timestamp: int
) -> bytes | None:
    """Return why the key manager refuses the call before it looks at permissions, or None."""
    if call.relay_nonce != manager.relay_nonce(signer, call.channel):
        return custom_error(
            "InvalidRelayNonce(address,uint256,bytes)", signer, call.relay_nonce, call.signature
        )
    if timestamp < call.valid_from:
        return custom_error("RelayCallBeforeStartTime()")
    if call.valid_until is not None and timestamp > call.valid_until:
        return custom_error("RelayCallExpired()")
    return None


def permission_refusal(
    *, profile: ProfileContract, controller: str, payload: bytes, is_relayed: bool
) -> bytes | None:
    """Return why the controller may not make the profile do this, or None."""
    held = profile.permissions_of(controller)
    if held == 0:
        return custom_error("NoPermissionsSet(address)", controller)
    if is_relayed and not held & Permission.EXECUTE_RELAY_CALL:
        return _lacks(controller, "EXECUTE_RELAY_CALL")
    selector = payload[:4]
    if selector == EXECUTE:
        return _execution_refusal(profile, controller, payload)
    if selector == SET_DATA:
        return None if _may(held, Permission.SETDATA) else _lacks(controller, "SETDATA")
    if selector in _BATCHES:
        needed = _BATCHES[selector]
        return None if _may(held, needed) else _lacks(controller, str(needed.name))
    if selector in _OWNERSHIP:
        return None if held & Permission.CHANGEOWNER else _lacks(controller, "CHANGEOWNER")
    return custom_error("InvalidERC725Function(bytes4)", selector)


def execute(
    *,
    profile: ProfileContract,
    payload: bytes,
    balance_wei: int,
    answer: Callable[[str], bytes | None],
) -> tuple[bytes | None, tuple[str, int] | None]:
    """
    Run the payload; return (revert data or None, the LYX that moved as (to, wei) or None).

    `answer` tells what the called target reverts with, or None where it succeeds.
    """
    if payload[:4] == SET_DATA:
        key, value = decode(["bytes32", "bytes"], payload[4:])
        profile.data[key] = value
    if payload[:4] == _SET_DATA_BATCH:
        for key, value in zip(*decode(["bytes32[]", "bytes[]"], payload[4:]), strict=True):
            profile.data[key] = value
            if key.startswith(PERMISSIONS_PREFIX):
                profile.permissions[checksum("0x" + key[-20:].hex())] = int.from_bytes(value, "big")
    if payload[:4] != EXECUTE:
        return None, None
    _, to, wei, _ = decode(["uint256", "address", "uint256", "bytes"], payload[4:])
    if wei > balance_wei:
        return custom_error("ERC725X_InsufficientBalance(uint256,uint256)", balance_wei, wei), None
    target = checksum(to)
    reverted = answer(target)
    return (reverted, None) if reverted is not None else (None, (target, wei))


def _execution_refusal(profile: ProfileContract, controller: str, payload: bytes) -> bytes | None:
    held = profile.permissions_of(controller)
    _, to, wei, calldata = decode(["uint256", "address", "uint256", "bytes"], payload[4:])
    needed = [Permission.TRANSFERVALUE] if wei else []
    needed += [Permission.CALL] if calldata or not wei else []
    for permission in needed:
        if not _may(held, permission):
            return _lacks(controller, str(permission.name))
    if all(held & _SUPER[permission] for permission in needed):
        return None
    targets = profile.allowed_targets.get(controller, ())
    if not targets:
        return custom_error("NoCallsAllowed(address)", controller)
    if checksum(to) not in targets:
        selector = calldata[:4].ljust(4, b"\0")
        return custom_error("NotAllowedCall(address,address,bytes4)", controller, to, selector)
    return None


def _may(held: int, permission: Permission) -> bool:
    return bool(held & (permission | _SUPER[permission]))


def _lacks(controller: str, permission: str) -> bytes:
    return custom_error("NotAuthorised(address,string)", controller, permission)
