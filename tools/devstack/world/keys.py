"""Private keys of the development chain, without `eth_account`, whose import alone takes over a second."""

from typing import Any

import rlp
from coincurve import PrivateKey
from eth_utils.address import to_checksum_address
from eth_utils.crypto import keccak


def address_of(private_key: str) -> str:
    """Return the address of a key in hex."""
    return to_checksum_address(keccak(_key(private_key).public_key.format(compressed=False)[1:])[12:])


def sign_digest(private_key: str, digest: bytes) -> bytes:
    """Return the 65-byte Ethereum signature of a digest."""
    signature = _key(private_key).sign_recoverable(digest, hasher=None)
    return signature[:64] + bytes([27 + signature[64]])


def sign_transaction(private_key: str, fields: dict[str, Any]) -> str:
    """Return the raw type-2 transaction of these fields, named as in JSON-RPC, in hex."""
    names = ("chainId", "nonce", "maxPriorityFeePerGas", "maxFeePerGas", "gas", "to", "value", "data")
    values = [fields[name] for name in names]
    signature = sign_digest(private_key, keccak(b"\x02" + rlp.encode([*values, []])))
    r, s = (int.from_bytes(signature[at : at + 32], "big") for at in (0, 32))
    signed: bytes = rlp.encode([*values, [], signature[64] - 27, r, s])
    return "0x02" + signed.hex()


def _key(private_key: str) -> PrivateKey:
    return PrivateKey(bytes.fromhex(private_key.removeprefix("0x")))
