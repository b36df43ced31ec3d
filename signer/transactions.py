"""Transactions as they are signed: EIP-1559's fields, their digest, and the bytes with the signature."""

from dataclasses import dataclass
from typing import Any, Literal

import rlp
from coincurve import PrivateKey, PublicKey
from eth_hash.auto import keccak
from eth_utils.address import to_checksum_address

SELF_TRANSFER_GAS = 21_000
_TYPE_2 = b"\x02"
# The number of the curve's points. Of the two values of s that fit, only the lower one is valid (EIP-2).
CURVE_ORDER = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141

# Why a signer refuses: the service never sends such a transaction; the account nonce is another transaction's; what
# may be signed within an hour or a day is used up.
Refusal = Literal["policy", "nonce-used", "used-up"]


class PolicyViolation(Exception):
    """The signer was asked for a transaction that the service never has a reason to send, or not now."""

    def __init__(self, reason: str, *, refusal: Refusal = "policy") -> None:
        super().__init__(reason)
        self.refusal = refusal


@dataclass(frozen=True, slots=True)
class UnsignedTransaction:
    """A type-2 transaction (EIP-1559) that sends no value; fees are wei per gas, `to` is EIP-55 text."""

    chain_id: int
    account_nonce: int
    max_priority_fee_per_gas_wei: int
    max_fee_per_gas_wei: int
    gas_limit: int
    to: str
    data: bytes


@dataclass(frozen=True, slots=True)
class SignedTransaction:
    """The bytes to broadcast and the hash they will be known by, lower-case 0x-hex."""

    raw: bytes
    transaction_hash: str


def signing_digest(transaction: UnsignedTransaction, *, value_wei: int = 0) -> bytes:
    """Return the digest that is signed."""
    return _digest(_fields(transaction, value_wei))


def with_signature(
    transaction: UnsignedTransaction, signature: bytes, *, value_wei: int = 0
) -> SignedTransaction:
    """Return the bytes of a transaction with its signature, 65 bytes of r, s and the recovery id."""
    return _signed(_fields(transaction, value_wei), signature)


def sign_with(key: PrivateKey, transaction: UnsignedTransaction, *, value_wei: int = 0) -> SignedTransaction:
    """Sign a transaction of this value, under no policy: the caller has checked its own."""
    fields = _fields(transaction, value_wei)
    return _signed(fields, key.sign_recoverable(_digest(fields), hasher=None))


def recoverable(digest: bytes, r: int, s: int, public_key: PublicKey) -> bytes:
    """
    Return a signature with the lower s and its recovery id, as Ethereum wants it, of one that a device made.

    Raises:
        ValueError: it is no signature of this key.
    """
    s = min(s, CURVE_ORDER - s)
    start = r.to_bytes(32, "big") + s.to_bytes(32, "big")
    wanted = public_key.format()
    for recovery_id in (0, 1):
        signature = start + bytes((recovery_id,))
        try:
            recovered = PublicKey.from_signature_and_message(signature, digest, hasher=None)
        except ValueError:
            continue
        if recovered.format() == wanted:
            return signature
    raise ValueError("the signature is not of this key")


def address_of(public_key: PublicKey) -> str:
    """Return the EIP-55 address of a key."""
    return to_checksum_address(keccak(public_key.format(compressed=False)[1:])[12:])


def _digest(fields: list[Any]) -> bytes:
    return keccak(_TYPE_2 + _rlp(fields))


def _signed(fields: list[Any], signature: bytes) -> SignedTransaction:
    y_parity, r, s = signature[64], *(int.from_bytes(signature[at : at + 32], "big") for at in (0, 32))
    raw = _TYPE_2 + _rlp([*fields, *map(_number, (y_parity, r, s))])
    return SignedTransaction(raw=raw, transaction_hash="0x" + keccak(raw).hex())


def _fields(transaction: UnsignedTransaction, value_wei: int) -> list[Any]:
    """Return the fields of a type-2 transaction without access list (EIP-1559), as RLP has them."""
    numbers = (
        transaction.chain_id,
        transaction.account_nonce,
        transaction.max_priority_fee_per_gas_wei,
        transaction.max_fee_per_gas_wei,
        transaction.gas_limit,
    )
    to = bytes.fromhex(transaction.to[2:])
    return [*map(_number, numbers), to, _number(value_wei), transaction.data, []]


def _rlp(fields: list[Any]) -> bytes:
    # Without inferring types: they are bytes already, and this takes a third of the time.
    encoded: bytes = rlp.encode(fields, infer_serializer=False)
    return encoded


def _number(number: int) -> bytes:
    return number.to_bytes((number.bit_length() + 7) // 8, "big")
