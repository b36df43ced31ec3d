"""
The copy of a profile and the removal of controllers from it, in one transaction.

A copy begins with the controllers of the first deployment. Multicall3 has the factory deploy it, and its key manager
execute a relay call that only takes permissions. Both happen or none, and nothing comes between them.
"""

from typing import NamedTuple

from eth_abi.abi import decode as decode_abi
from eth_abi.abi import encode as encode_abi
from eth_abi.exceptions import DecodingError
from eth_utils.abi import function_signature_to_4byte_selector
from eth_utils.address import to_checksum_address

from signer import deployments
from signer.contracts import EXECUTE_RELAY_CALL
from signer.deployments import FACTORY, PERMISSIONS_PREFIX, Deployment, addresses_of

# https://github.com/mds1/multicall3: its address, and the hash of its code there, are the same on every chain.
MULTICALL = "0xcA11bde05977b3631167028862bE2a173976CA11"
MULTICALL_CODE_HASH = "0xd5c15df687b16f2ff992fc8d767b4216323184a2bbc6ee2f9c398c318e770891"

_AGGREGATE = function_signature_to_4byte_selector("aggregate3((address,bool,bytes)[])")
_CALLS = ["(address,bool,bytes)[]"]
_RELAY_CALL = ["bytes", "uint256", "uint256", "bytes"]
_SET_DATA_BATCH = function_signature_to_4byte_selector("setDataBatch(bytes32[],bytes[])")
_SELECTOR, _WORD = 4, 32
Entries = tuple[tuple[bytes, bytes], ...]


class CopyWithRemoval(NamedTuple):
    """
    A copy to deploy, and the data keys that its key manager sets at once, with their values.

    The signature is that of a relay call with nonce 0 and without an end (LSP-25).
    """

    deployment: Deployment
    removal: Entries
    signature: bytes


def payload_of(removal: Entries) -> bytes:
    """Return what the profile executes: `setDataBatch` (ERC-725Y)."""
    return _SET_DATA_BATCH + deployments.encode_entries(removal)


def encode(copy: CopyWithRemoval) -> bytes:
    """Return the calldata for Multicall3."""
    relay_call = encode_abi(_RELAY_CALL, [copy.signature, 0, 0, payload_of(copy.removal)])
    calls = [
        (FACTORY, False, deployments.encode(copy.deployment)),
        (addresses_of(copy.deployment).key_manager, False, EXECUTE_RELAY_CALL + relay_call),
    ]
    return bytes(_AGGREGATE + encode_abi(_CALLS, [calls]))


def decode(calldata: bytes) -> CopyWithRemoval | None:
    """Return the copy and its removal; None if the calldata is not exactly what `encode` returns for them."""
    try:
        (calls,) = decode_abi(_CALLS, calldata[_SELECTOR:])
        (_, _, deploying), (_, _, executing) = calls
        signature, _, _, payload = decode_abi(_RELAY_CALL, executing[_SELECTOR:])
    except (DecodingError, ValueError, OverflowError):
        return None
    deployment, removal = deployments.decode(deploying), deployments.decode_entries(payload[_SELECTOR:])
    if deployment is None or removal is None:
        return None
    copy = CopyWithRemoval(deployment, tuple(removal), signature)
    return copy if encode(copy) == calldata else None


def takes_permissions_alone(copy: CopyWithRemoval) -> bool:
    """Return whether the removal changes nothing but permissions of the deployment, and gives none of them."""
    given = {
        key: int.from_bytes(value, "big")
        for key, value in deployments.decode_entries(copy.deployment.module_data) or ()
        if key.startswith(PERMISSIONS_PREFIX)
    }
    return bool(copy.removal) and all(
        key in given and len(value) in {0, _WORD} and not int.from_bytes(value, "big") & ~given[key]
        for key, value in copy.removal
    )


def deployed_addresses(returned: bytes) -> deployments.Addresses | None:
    """Return the addresses at which the factory deployed the copy, given what Multicall3 returned; None for others."""
    try:
        ((_, deployed), _) = decode_abi(["(bool,bytes)[]"], returned)[0]
        profile, key_manager = decode_abi(["address", "address"], deployed)
    except (DecodingError, ValueError, OverflowError):
        return None
    return deployments.Addresses(to_checksum_address(profile), to_checksum_address(key_manager))
