"""Transactions as they are signed: EIP-1559's fields, their digest, and the bytes with the signature."""

from dataclasses import dataclass
from typing import Literal

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


def _digest(fields: bytes) -> bytes:
    return keccak(_TYPE_2 + _rlp_list(fields))


def _signed(fields: bytes, signature: bytes) -> SignedTransaction:
    y_parity, r, s = signature[64], *(int.from_bytes(signature[at : at + 32], "big") for at in (0, 32))
    raw = _TYPE_2 + _rlp_list(fields + _rlp_number(y_parity) + _rlp_number(r) + _rlp_number(s))
    return SignedTransaction(raw=raw, transaction_hash="0x" + keccak(raw).hex())


def _fields(transaction: UnsignedTransaction, value_wei: int) -> bytes:
    """Return the fields of a type-2 transaction without access list (EIP-1559), RLP-encoded."""
    return b"".join(
        (
            _rlp_number(transaction.chain_id),
            _rlp_number(transaction.account_nonce),
            _rlp_number(transaction.max_priority_fee_per_gas_wei),
            _rlp_number(transaction.max_fee_per_gas_wei),
            _rlp_number(transaction.gas_limit),
            _rlp_bytes(bytes.fromhex(transaction.to[2:])),
            _rlp_number(value_wei),
            _rlp_bytes(transaction.data),
            _NO_ACCESS_LIST,
        )
    )


# RLP (Ethereum yellow paper, appendix B) of the few shapes that occur here; `docs/performance.md` compares it with
# the library, and a test does so with every shape.
_NO_ACCESS_LIST = b"\xc0"


def _rlp_number(number: int) -> bytes:
    return _rlp_bytes(number.to_bytes((number.bit_length() + 7) // 8, "big"))


def _rlp_bytes(data: bytes) -> bytes:
    return data if len(data) == 1 and data[0] < 0x80 else _rlp_length(len(data), 0x80) + data


def _rlp_list(items: bytes) -> bytes:
    return _rlp_length(len(items), 0xC0) + items


def _rlp_length(length: int, offset: int) -> bytes:
    if length < 56:
        return bytes((offset + length,))
    size = length.to_bytes((length.bit_length() + 7) // 8, "big")
    return bytes((offset + 55 + len(size),)) + size
