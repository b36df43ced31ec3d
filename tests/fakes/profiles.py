"""Profiles, their controllers, and relay calls signed by them. Keys are random, so no two runs share any."""

import secrets
from dataclasses import dataclass, field

from coincurve import PrivateKey
from eth_abi.abi import encode
from eth_hash.auto import keccak

from gateway.chain.lsp6 import ALL_PERMISSIONS
from gateway.chain.lsp25 import RelayCall, relay_digest
from gateway.common.fields import checksum

SET_DATA = bytes.fromhex("7f23690c")
EXECUTE = bytes.fromhex("44c028fe")


def random_address() -> str:
    """Return a fresh address without a known key."""
    return checksum("0x" + secrets.token_hex(20))


def random_key() -> str:
    """Return a fresh private key as 0x-hex."""
    return "0x" + secrets.token_hex(32)


def address_of(private_key: str) -> str:
    """Return the EIP-55 address of a private key."""
    point = PrivateKey.from_hex(private_key[2:]).public_key.format(compressed=False)
    return checksum("0x" + keccak(point[1:])[12:].hex())


def sign(private_key: str, digest: bytes) -> bytes:
    """Return the 65 bytes r, s, v (27 or 28) of the key's signature over a 32-byte digest."""
    signature = PrivateKey.from_hex(private_key[2:]).sign_recoverable(digest, hasher=None)
    return signature[:64] + bytes([27 + signature[64]])


@dataclass(frozen=True)
class Controller:
    """A controller of a profile, with its key."""

    permissions: int = ALL_PERMISSIONS
    private_key: str = field(default_factory=random_key, repr=False)
    # Targets that a controller without SUPER permissions may send value to and call.
    allowed_targets: tuple[str, ...] = ()

    @property
    def address(self) -> str:
        """Its EIP-55 address."""
        return address_of(self.private_key)

    def sign(self, digest: bytes) -> bytes:
        """Return its signature over a 32-byte digest."""
        return sign(self.private_key, digest)


@dataclass(frozen=True)
class Profile:
    """A Universal Profile, its key manager and its controllers."""

    profile_address: str
    key_manager_address: str
    controllers: tuple[Controller, ...]

    @property
    def controller(self) -> Controller:
        """The first controller."""
        return self.controllers[0]


def set_data(key: bytes | None = None, value: bytes = b"") -> bytes:
    """Return the payload that writes a data key, a random one unless given."""
    return SET_DATA + encode(["bytes32", "bytes"], [key or secrets.token_bytes(32), value])


def transfer(to: str, wei: int = 1, calldata: bytes = b"") -> bytes:
    """Return the payload that sends the profile's LYX, and calls the target where calldata is given."""
    return EXECUTE + encode(["uint256", "address", "uint256", "bytes"], [0, to, wei, calldata])


def sign_relay_call(
    profile: Profile,
    payload: bytes,
    *,
    chain_id: int,
    relay_nonce: int = 0,
    validity: int = 0,
    controller: Controller | None = None,
) -> RelayCall:
    """Return the relay call as a well-behaved wallet signs it; by the first controller unless another is named."""
    digest = relay_digest(
        chain_id=chain_id,
        key_manager=profile.key_manager_address,
        relay_nonce=relay_nonce,
        validity=validity,
        payload=payload,
    )
    signature = (controller or profile.controller).sign(digest)
    return RelayCall(profile.key_manager_address, payload, signature, relay_nonce, validity)
