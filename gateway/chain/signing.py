"""
Relayer keys, and a policy that no caller can override.

A signer refuses every transaction that the service does not need, so a fault elsewhere can at most waste gas, but not
move a relayer's funds. Keys never leave this module.
"""

from collections.abc import Sequence
from functools import cache
from typing import NoReturn, Protocol

from coincurve import PrivateKey
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from eth_account.hdaccount.deterministic import HDPath
from mnemonic import Mnemonic

from gateway.chain.config import get_chain, on_chain
from gateway.chain.remote_signing import remote_signer
from signer.messages import SigningRequest
from signer.policy import DeploymentLimits, TransactionLimits, check_relayed
from signer.transactions import (
    PolicyViolation,
    SignedTransaction,
    UnsignedTransaction,
    address_of,
    sign_with,
)


class NoSigner(ImproperlyConfigured):
    """This process has no relayer keys, so it cannot sign or list relayers."""

    def __init__(self) -> None:
        super().__init__("This process does not sign. Only web, admin and the relay worker do.")


class Signer(Protocol):
    """Signs with the relayers' keys, in this process or in another one."""

    @property
    def is_remote(self) -> bool:
        """Whether another process signs; if so, do not sign within a database transaction."""
        ...

    def addresses(self) -> list[str]:
        """Return the EIP-55 addresses of all keys, in a stable order."""
        ...

    def spare_addresses(self) -> list[str]:
        """Return those of `addresses` that take no calls until staff have added them."""
        ...

    def require_available(self) -> None:
        """
        Check that a remote signer is not failing; keys in this process never fail.

        Raises:
            SignerUnavailable: the remote signer has failed recently.
        """
        ...

    def sign(self, *, relayer: str, transaction: UnsignedTransaction) -> SignedTransaction:
        """
        Sign for one relayer; the same transaction always gives the same bytes.

        Raises:
            PolicyViolation: the signing policy forbids the transaction.
            SignerUnavailable: a remote signer does not respond; it may still have signed.
        """
        ...

    def sign_batch(self, requests: Sequence[SigningRequest]) -> list[SignedTransaction | Exception]:
        """
        Sign several in one request; return for each the signed transaction, or the error that `sign` would raise.

        Raises:
            SignerUnavailable: a remote signer does not respond; it may still have signed some of them.
        """
        ...


class LocalSigner:
    """
    Keys in this process's memory. No repr and no error shows them.

    `keys` are in service from the start; `spare_keys` are for relayers that staff may add later.
    """

    is_remote = False

    def __init__(
        self,
        keys: Sequence[str],
        *,
        chain_id: int,
        fee_cap_wei: int,
        max_gas: int,
        max_deployment_gas: int = 0,
        spare_keys: Sequence[str] = (),
    ) -> None:
        self._keys = dict(
            read_key(text, f"RELAY_RELAYER_KEYS: entry {at}") for at, text in enumerate(keys, start=1)
        )
        spare = dict(read_key(text, "a derived key") for text in spare_keys)
        self._spare = [address for address in spare if address not in self._keys]
        self._keys |= spare
        self._limits = TransactionLimits(chain_id=chain_id, fee_cap_wei=fee_cap_wei, max_gas=max_gas)
        self._deploys = DeploymentLimits(max_gas=max_deployment_gas)

    def __repr__(self) -> str:
        return f"LocalSigner({', '.join(self._keys)})"

    def addresses(self) -> list[str]:
        return list(self._keys)

    def spare_addresses(self) -> list[str]:
        return list(self._spare)

    def require_available(self) -> None:
        """Keys in memory never fail."""

    def sign(self, *, relayer: str, transaction: UnsignedTransaction) -> SignedTransaction:
        key = self._keys.get(relayer)
        if key is None:
            raise PolicyViolation("no key for this relayer")
        check_relayed(
            transaction, relayer=relayer, own=self._keys, limits=self._limits, deploys=self._deploys
        )
        return sign_with(key, transaction)

    def sign_batch(self, requests: Sequence[SigningRequest]) -> list[SignedTransaction | Exception]:
        outcomes: list[SignedTransaction | Exception] = []
        for request in requests:
            try:
                outcomes.append(self.sign(relayer=request.address, transaction=request.transaction))
            except PolicyViolation as refusal:
                outcomes.append(refusal)
        return outcomes


def read_key(text: str, name: str) -> tuple[str, PrivateKey]:
    """
    Return the EIP-55 address and the key of 32 bytes in hex.

    Raises:
        ImproperlyConfigured: the text is not a private key. The error shows only its `name`.
    """
    try:
        secret = bytes.fromhex(text.removeprefix("0x"))
        if len(secret) != 32:
            _refuse_key(name)
        key = PrivateKey(secret)
    except ValueError:
        _refuse_key(name)
    return address_of(key.public_key), key


def _refuse_key(name: str) -> NoReturn:
    # Show neither the text nor the library's error, which may quote it.
    raise ImproperlyConfigured(f"{name} is not a private key of 32 bytes in hex.") from None


def derive_keys(mnemonic: str, *, count: int) -> list[str]:
    """
    Return the first private keys of a BIP-39 mnemonic, in hex, along `m/44'/60'/0'/0/i` as wallets derive them.

    The words may be of any language of BIP-39; there is no passphrase.

    Raises:
        ImproperlyConfigured: the words are not a mnemonic. The error does not show them.
    """
    # Try each language, because some words belong to several. The keys do not depend on the language.
    if not any(Mnemonic(language).check(mnemonic) for language in Mnemonic.list_languages()):
        raise ImproperlyConfigured("RELAY_RELAYER_MNEMONIC is not a mnemonic of BIP-39.")
    seed = Mnemonic.to_seed(mnemonic)
    return ["0x" + HDPath(f"m/44'/60'/0'/0/{index}").derive(seed).hex() for index in range(count)]


_installed: Signer | None = None


@cache
def _local(chain_id: int) -> LocalSigner:
    with on_chain(chain_id):
        chain = get_chain()
    mnemonic, further = settings.RELAY_RELAYER_MNEMONIC, settings.CHAINS.get(chain_id)
    return LocalSigner(
        further.relayer_keys if further else settings.RELAY_RELAYER_KEYS,
        chain_id=chain.id,
        fee_cap_wei=chain.fees.cap_wei,
        max_gas=settings.RELAY_MAX_GAS,
        max_deployment_gas=settings.RELAY_DEPLOYMENT_MAX_GAS,
        spare_keys=derive_keys(mnemonic, count=settings.RELAY_DERIVED_RELAYERS) if mnemonic else (),
    )


def set_signer(signer: Signer | None) -> None:
    """Install another signer for this process; None returns to a new one from the settings."""
    global _installed  # noqa: PLW0603
    _installed = signer
    _local.cache_clear()
    remote_signer.cache_clear()


def get_signer() -> Signer:
    """
    Return the installed signer, or else that of the settings: another process, or keys in this one.

    Raises:
        NoSigner: this process has no keys and no remote signer.
    """
    if _installed is not None:
        return _installed
    if settings.RELAY_SIGNER == "none":
        raise NoSigner
    return remote_signer() if settings.RELAY_SIGNER == "remote" else _local(get_chain().id)
