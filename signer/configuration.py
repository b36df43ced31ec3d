"""The signer's configuration, from the environment; `docs/configuration.md` lists every variable."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from signer.client import Certificates
from signer.journal import Journal
from signer.keys import RELAYERS, SPARE, TREASURY, Keyring, only_treasury, read_keystore
from signer.policy import TransactionLimits
from signer.service import Policy, SigningService
from signer.targets import NodeTargets

# The implementations that LUKSO has published; the service starts with the same.
KEY_MANAGERS = "0x2Fe3AeD98684E7351aD2D408A43cE09a738BF8a4,0xa75684d7D048704a2DB851D05Ba0c3cbe226264C"
PROFILES = "0x3024D38EA2434BA6635003Dc1BDC0daB5882ED4F,0x52c90985AF970D4E0DC26Cb5D052505278aF32A9"


class Misconfigured(Exception):
    """A variable is missing or malformed; the text names it and contains no secret."""


@dataclass(frozen=True)
class Configuration:
    """The configuration that a signer starts with."""

    listen: str
    certificates: Certificates | None
    service: SigningService


def configure(environment: Mapping[str, str] = os.environ) -> Configuration:
    """
    Return the signer that the variables describe, with its keys decrypted and its journal open.

    Raises:
        Misconfigured: a variable is missing or malformed, or no relayer has a key.
        KeyUnusable: a key cannot be read, or there is more than one treasury.
        JournalInUse: another signer runs on this journal.
    """
    read = _Reader(environment)
    # CHAIN_ and RELAY_ are the service's variables: a limit that an operator changes is the same on both sides.
    chain_id = read.number("CHAIN_ID")
    is_open = read.text("CHAIN_TRUST", "strict") == "open"
    policy = Policy(
        TransactionLimits(
            chain_id=chain_id,
            fee_cap_wei=read.number("RELAY_FEE_CAP_WEI", 20 * 10**9),
            max_gas=read.number("RELAY_MAX_GAS", 3_000_000),
        ),
        gas_per_hour=read.number("SIGNER_GAS_PER_HOUR", 10**9),
        max_gas_untrusted=read.number("RELAY_MAX_GAS_UNTRUSTED", 500_000) if is_open else 0,
        transfer_wei=read.number("RELAY_TOP_UP_TO_WEI", 2 * 10**17),
        transfers_per_day_wei=read.number("RELAY_TOP_UP_DAILY_WEI", 5 * 10**18),
    )
    targets = NodeTargets(
        read.text("SIGNER_RPC_URL"),
        chain_id=chain_id,
        key_managers=read.listing("SIGNER_TRUSTED_KEY_MANAGERS", KEY_MANAGERS),
        profiles=read.listing("SIGNER_TRUSTED_PROFILES", PROFILES),
    )
    keys = _from_keystore(read) | _from_token(read) | _from_aws(read)
    if not keys.for_calls:
        raise Misconfigured("Neither a keystore nor a token nor AWS has a relayer's key.")
    service = SigningService(keys, policy, Journal(read.text("SIGNER_JOURNAL")), targets)
    folder = read.text("SIGNER_TLS_FOLDER", "")
    certificates = Certificates.in_folder(folder) if folder else None
    return Configuration(read.text("SIGNER_LISTEN"), certificates, service)


def _from_keystore(read: "_Reader") -> Keyring:
    directory = read.text("SIGNER_KEYSTORE", "")
    if not directory:
        return Keyring.of([])
    return read_keystore(Path(directory), read.secret("SIGNER_KEYSTORE_PASSWORD"))


def _from_token(read: "_Reader") -> Keyring:
    module = read.text("SIGNER_PKCS11_MODULE", "")
    if not module:
        return Keyring.of([])
    from signer.tokens import Token  # Loads the library, which only installations with a device have.

    token = Token(module, label=read.text("SIGNER_PKCS11_TOKEN"), pin=read.secret("SIGNER_PKCS11_PIN"))
    return Keyring.of(token.keys(RELAYERS), token.keys(SPARE), only_treasury(token.keys(TREASURY)))


def _from_aws(read: "_Reader") -> Keyring:
    relayers, spare = read.listing("SIGNER_AWS_RELAYERS", ""), read.listing("SIGNER_AWS_SPARE", "")
    treasury = read.text("SIGNER_AWS_TREASURY", "")
    if not (relayers or spare or treasury):
        return Keyring.of([])
    from signer.aws import KmsKey, kms_client

    client = kms_client()
    return Keyring.of(
        [KmsKey(client, name) for name in relayers],
        [KmsKey(client, name) for name in spare],
        KmsKey(client, treasury) if treasury else None,
    )


class _Reader:
    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment

    def text(self, name: str, default: str | None = None) -> str:
        value = self._environment.get(name, "") or default
        if value is None:
            raise Misconfigured(f"Set {name}.")
        return value

    def number(self, name: str, default: int | None = None) -> int:
        value = self.text(name, None if default is None else str(default))
        if not value.isdecimal():
            raise Misconfigured(f"{name} must be a whole number.")
        return int(value)

    def listing(self, name: str, default: str) -> list[str]:
        return [item.strip() for item in self.text(name, default).split(",") if item.strip()]

    def secret(self, name: str) -> str:
        """Return a secret from the variable, or from the file that `NAME_FILE` names."""
        file = self._environment.get(f"{name}_FILE", "")
        if not file:
            return self.text(name)
        try:
            return Path(file).read_text(encoding="utf-8").strip()
        except OSError:
            raise Misconfigured(f"{name}_FILE names a file that cannot be read.") from None
