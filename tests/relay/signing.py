"""Signs relay calls with eth-account, which shares no code with the service."""

import secrets
from collections.abc import Callable

from eth_abi.abi import encode
from eth_account import Account
from eth_account.messages import encode_defunct, encode_intended_validator
from eth_utils.address import to_checksum_address
from eth_utils.crypto import keccak

from devstack.services.stack import Services
from devstack.world.profiles import Profile
from gateway.chain.lsp25 import RelayCall


def set_data_payload(value: bytes | None = None, *, key: bytes = keccak(text="tests")) -> bytes:
    """Return calldata of setData, by default under a fixed key with a random value."""
    data = secrets.token_bytes(12) if value is None else value
    return keccak(text="setData(bytes32,bytes)")[:4] + encode(["bytes32", "bytes"], [key, data])


def execute_payload(to: str, value: int = 0, data: bytes = b"") -> bytes:
    """Return calldata of the profile calling `to` with `value` wei."""
    return keccak(text="execute(uint256,address,uint256,bytes)")[:4] + encode(
        ["uint256", "address", "uint256", "bytes"], [0, to_checksum_address(to), value, data]
    )


def sign_digest(private_key: str, digest: bytes) -> bytes:
    """Return the key's signature over these 32 bytes, whatever they are the hash of."""
    return bytes(Account.unsafe_sign_hash(digest, private_key).signature)


def window(start: int, end: int) -> int:
    """Return validity timestamps for a call that is valid between two unix seconds; 0 leaves a side open."""
    return start << 128 | end


def next_nonce(services: Services, profile: Profile, controller: str, channel: int = 0) -> int:
    """Ask the key manager for the controller's next nonce on the channel."""
    call_data = keccak(text="getNonce(address,uint128)")[:4] + encode(
        ["address", "uint128"], [controller, channel]
    )
    target = {"to": profile.key_manager_address, "data": "0x" + call_data.hex()}
    return int(services.rpc.call("eth_call", target, "latest"), 16)


def sign_call(
    *,
    services: Services,
    profile: Profile,
    payload: bytes | None = None,
    relay_nonce: int | None = None,
    channel: int = 0,
    ahead: int = 0,
    validity: int = 0,
    private_key: str | None = None,
    chain_id: int | None = None,
) -> RelayCall:
    """Sign a call, by default the first controller's setData at the chain's next nonce plus `ahead`."""
    key = private_key or profile.controller.private_key
    payload = set_data_payload() if payload is None else payload
    if relay_nonce is None:
        relay_nonce = next_nonce(services, profile, Account.from_key(key).address, channel) + ahead
    words = (25, chain_id or services.chain_id, relay_nonce, validity, 0)
    message = b"".join(word.to_bytes(32, "big") for word in words) + payload
    signed = Account.sign_message(
        encode_intended_validator(
            to_checksum_address(profile.key_manager_address), hexstr="0x" + message.hex()
        ),
        key,
    )
    return RelayCall(profile.key_manager_address, payload, bytes(signed.signature), relay_nonce, validity)


def _inner(address: str, timestamp: int) -> bytes:
    return keccak(bytes.fromhex(address[2:]) + timestamp.to_bytes(32, "big"))


def _personal(message: bytes, private_key: str) -> bytes:
    return bytes(Account.sign_message(encode_defunct(message), private_key).signature)


QUOTA_DIALECTS: dict[str, Callable[[str, int, str], bytes]] = {
    "personal message of the hash": lambda address, timestamp, key: _personal(
        _inner(address, timestamp), key
    ),
    "text with the checksummed address": lambda address, timestamp, key: _personal(
        f"{to_checksum_address(address)}:{timestamp}".encode(), key
    ),
    "text with the lower-case address": lambda address, timestamp, key: _personal(
        f"{address.lower()}:{timestamp}".encode(), key
    ),
    "the bare hash": lambda address, timestamp, key: sign_digest(key, _inner(address, timestamp)),
}
"""How wallets sign for their quota: address, unix second and private key become a signature."""
