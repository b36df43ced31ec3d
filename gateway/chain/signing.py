"""
Relayer keys, and the policy that no caller can override.

A signer refuses whatever the service has no reason to sign, so that a fault elsewhere
can at most waste gas, and never moves a relayer's funds. Keys do not leave this module.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import NoReturn, Protocol

from coincurve import PrivateKey
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from eth_hash.auto import keccak

from gateway.chain.config import get_chain
from gateway.chain.contracts import is_execute_relay_call
from gateway.common.fields import checksum

SELF_TRANSFER_GAS = 21_000
_TYPE_2 = b"\x02"


class PolicyViolation(Exception):
    """The signer was asked for a transaction that the service never has a reason to send."""


class NoSigner(ImproperlyConfigured):
    """This process holds no relayer keys (`RELAY_SIGNER` is none), so it neither signs nor names relayers."""

    def __init__(self) -> None:
        super().__init__("RELAY_SIGNER is none here: only the web process and the relay worker sign.")


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


class Signer(Protocol):
    """Holds the relayer keys: this process, or a service elsewhere."""

    def addresses(self) -> list[str]:
        """Return the EIP-55 addresses it can sign for, in a stable order."""
        ...

    def spare_addresses(self) -> list[str]:
        """Return those of `addresses` that take calls only once staff have added them."""
        ...

    def sign(self, *, relayer: str, transaction: UnsignedTransaction) -> SignedTransaction:
        """
        Sign for one relayer; the same transaction always gives the same bytes.

        Raises:
            PolicyViolation: the service never sends such a transaction.
        """
        ...


class LocalSigner:
    """
    Keys in this process's memory. No text ever shows them: no repr, no error.

    `keys` are in service from the start; `spare_keys` are those of relayers that staff may add later.
    """

    def __init__(
        self,
        keys: list[str],
        *,
        chain_id: int,
        fee_cap_wei: int,
        max_gas: int,
        spare_keys: Sequence[str] = (),
    ) -> None:
        self._keys = dict(
            read_key(text, f"RELAY_RELAYER_KEYS: entry {at}") for at, text in enumerate(keys, start=1)
        )
        spare = dict(read_key(text, "a derived key") for text in spare_keys)
        self._spare = [address for address in spare if address not in self._keys]
        self._keys |= spare
        self._chain_id, self._fee_cap_wei, self._max_gas = chain_id, fee_cap_wei, max_gas

    def __repr__(self) -> str:
        return f"LocalSigner({', '.join(self._keys)})"

    def addresses(self) -> list[str]:
        return list(self._keys)

    def spare_addresses(self) -> list[str]:
        return list(self._spare)

    def sign(self, *, relayer: str, transaction: UnsignedTransaction) -> SignedTransaction:
        key = self._keys.get(relayer)
        if key is None:
            raise PolicyViolation("no key for this relayer")
        self._check(relayer, transaction)
        return sign_with(key, transaction)

    def _check(self, relayer: str, transaction: UnsignedTransaction) -> None:
        if transaction.chain_id != self._chain_id:
            raise PolicyViolation("another chain id than the configured one")
        if (
            not 0
            <= transaction.max_priority_fee_per_gas_wei
            <= transaction.max_fee_per_gas_wei
            <= self._fee_cap_wei
        ):
            raise PolicyViolation("fees above the cap, or a tip above the fee")
        if transaction.to == relayer:
            if transaction.data or transaction.gas_limit != SELF_TRANSFER_GAS:
                raise PolicyViolation("a self-transfer carries no data and 21,000 gas")
        elif not is_execute_relay_call(transaction.data):
            raise PolicyViolation("neither a relay call nor a self-transfer")
        elif transaction.to in self._keys:
            raise PolicyViolation("a relay call goes to a key manager, not to a relayer")
        if not 0 < transaction.gas_limit <= self._max_gas:
            raise PolicyViolation("gas limit above the cap")


def sign_with(key: PrivateKey, transaction: UnsignedTransaction, *, value_wei: int = 0) -> SignedTransaction:
    """Sign a type-2 transaction (EIP-1559) of this value, under no policy: the caller has checked its own."""
    fields = _fields(transaction, value_wei)
    signature = key.sign_recoverable(keccak(_TYPE_2 + _rlp_list(fields)), hasher=None)
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


def read_key(text: str, name: str) -> tuple[str, PrivateKey]:
    """
    Return the EIP-55 address and the key of 32 bytes in hex.

    Raises:
        ImproperlyConfigured: it is no private key. The error gives its `name` alone.
    """
    try:
        secret = bytes.fromhex(text.removeprefix("0x"))
        if len(secret) != 32:
            _refuse_key(name)
        key = PrivateKey(secret)
    except ValueError:
        _refuse_key(name)
    return checksum("0x" + keccak(key.public_key.format(compressed=False)[1:])[12:].hex()), key


def _refuse_key(name: str) -> NoReturn:
    # Show neither the text nor the library's error, which may quote it.
    raise ImproperlyConfigured(f"{name} is not a private key of 32 bytes in hex.") from None


def derive_keys(mnemonic: str, *, count: int) -> list[str]:
    """
    Return the first private keys of a BIP-39 mnemonic, in hex, along `m/44'/60'/0'/0/i` as wallets derive them.

    Raises:
        ImproperlyConfigured: the words are no mnemonic. The error does not show them.
    """
    # The web process of a service without a mnemonic does not load the library.
    from eth_account.hdaccount import ETHEREUM_DEFAULT_PATH, key_from_seed, seed_from_mnemonic

    try:
        seed = seed_from_mnemonic(mnemonic, "")
    except Exception:  # noqa: BLE001 - the library has several errors, and each may quote the words
        raise ImproperlyConfigured("RELAY_RELAYER_MNEMONIC is not a mnemonic of BIP-39.") from None
    parent = ETHEREUM_DEFAULT_PATH.rpartition("/")[0]
    return ["0x" + key_from_seed(seed, f"{parent}/{index}").hex() for index in range(count)]


_installed: Signer | None = None


@cache
def _local() -> LocalSigner:
    chain, mnemonic = get_chain(), settings.RELAY_RELAYER_MNEMONIC
    return LocalSigner(
        settings.RELAY_RELAYER_KEYS,
        chain_id=chain.id,
        fee_cap_wei=chain.fees.cap_wei,
        max_gas=settings.RELAY_MAX_GAS,
        spare_keys=derive_keys(mnemonic, count=settings.RELAY_DERIVED_RELAYERS) if mnemonic else (),
    )


def set_signer(signer: Signer | None) -> None:
    """Install another signer for this process, or with None a new one from the settings."""
    global _installed  # noqa: PLW0603
    _installed = signer
    _local.cache_clear()


def get_signer() -> Signer:
    """
    Return the installed signer, else one over the keys of the settings, made once.

    Raises:
        NoSigner: this process was started to sign nothing.
    """
    if _installed is not None:
        return _installed
    if settings.RELAY_SIGNER == "none":
        raise NoSigner
    return _local()
