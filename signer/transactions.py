"""Type-2 transactions (EIP-1559): their fields, the digest to sign, and the signed bytes."""

from dataclasses import dataclass
from typing import Any, Literal

from coincurve import PrivateKey, PublicKey
from eth_hash.auto import keccak
from eth_utils.address import to_checksum_address
from rlp.codec import encode_raw, length_prefix

SELF_TRANSFER_GAS = 21_000
_TYPE_2 = b"\x02"
# The offset that RLP adds to a list's length for its prefix.
_LIST = 0xC0
# The order of the curve. Of the two possible values of s, only the lower one is valid (EIP-2).
CURVE_ORDER = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141

# The reasons of a refusal: the policy forbids the transaction; the account nonce belongs to another transaction; the
# hourly or daily limit is reached.
Refusal = Literal["policy", "nonce-used", "used-up"]


class PolicyViolation(Exception):
    """The signer's policy forbids this transaction, always or for now."""

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
    """The bytes to broadcast, and the transaction hash in lower-case 0x-hex."""

    raw: bytes
    transaction_hash: str


def signing_digest(transaction: UnsignedTransaction, *, value_wei: int) -> bytes:
    """Return the digest to sign."""
    return _digest(_encoded(_fields(transaction, value_wei)))


def with_signature(
    transaction: UnsignedTransaction, signature: bytes, *, value_wei: int
) -> SignedTransaction:
    """Return the signed bytes of a transaction; the signature is 65 bytes of r, s and the recovery id."""
    return _signed(_encoded(_fields(transaction, value_wei)), signature)


def sign_with(key: PrivateKey, transaction: UnsignedTransaction, *, value_wei: int = 0) -> SignedTransaction:
    """Sign a transaction of this value; the caller must have applied its policy."""
    fields = _encoded(_fields(transaction, value_wei))
    return _signed(fields, key.sign_recoverable(_digest(fields), hasher=None))


def recoverable(digest: bytes, r: int, s: int, public_key: PublicKey) -> bytes:
    """
    Return a device's signature in Ethereum's form, with the lower s and the recovery id.

    Raises:
        ValueError: r and s are not a signature by this key.
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


def _digest(fields: bytes) -> bytes:
    return keccak(_list_of(fields))


def _signed(fields: bytes, signature: bytes) -> SignedTransaction:
    y_parity, r, s = signature[64], *(int.from_bytes(signature[at : at + 32], "big") for at in (0, 32))
    raw = _list_of(fields + _encoded([*map(_number, (y_parity, r, s))]))
    return SignedTransaction(raw=raw, transaction_hash="0x" + keccak(raw).hex())


def _encoded(fields: list[Any]) -> bytes:
    """Return the concatenated RLP of the fields; the signed transaction reuses the bytes of the unsigned one."""
    return b"".join(map(encode_raw, fields))


def _list_of(encoded: bytes) -> bytes:
    """Return a type-2 transaction of these encoded fields."""
    prefix: bytes = length_prefix(len(encoded), _LIST)
    return _TYPE_2 + prefix + encoded


def _number(number: int) -> bytes:
    return number.to_bytes((number.bit_length() + 7) // 8, "big")
