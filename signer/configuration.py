"""The signer's configuration, from the environment; `docs/configuration.md` lists every variable."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from signer.chains import Policy, ServedChain
from signer.client import Certificates
from signer.journal import Journal
from signer.keys import RELAYERS, SPARE, TREASURY, Keyring, only_treasury, read_keystore
from signer.policy import DeploymentLimits, TransactionLimits
from signer.service import SigningService
from signer.targets import NodeTargets

# The implementations that LUKSO has published; the service initially trusts the same ones.
KEY_MANAGERS = "0x2Fe3AeD98684E7351aD2D408A43cE09a738BF8a4,0xa75684d7D048704a2DB851D05Ba0c3cbe226264C"
PROFILES = "0x3024D38EA2434BA6635003Dc1BDC0daB5882ED4F,0x52c90985AF970D4E0DC26Cb5D052505278aF32A9"
# The maximum gas of a call of untrusted code, the same as in `gateway.settings`.
_MAX_GAS_UNTRUSTED = 500_000


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
        Misconfigured: variables are missing or malformed, all of which it names, or no relayer has a key.
        KeyUnusable: a key cannot be read, or there is more than one treasury.
        JournalInUse: another signer runs on this journal.
    """
    read = _Reader(environment)
    chains = [_home(read), *_further(read)]
    journal, listen = read.text("SIGNER_JOURNAL"), read.text("SIGNER_LISTEN")
    keystore, module = read.text("SIGNER_KEYSTORE", ""), read.text("SIGNER_PKCS11_MODULE", "")
    password = read.secret("SIGNER_KEYSTORE_PASSWORD") if keystore else ""
    label = read.text("SIGNER_PKCS11_TOKEN") if module else ""
    pin = read.secret("SIGNER_PKCS11_PIN") if module else ""
    aws = {
        RELAYERS: read.listing("SIGNER_AWS_RELAYERS", ""),
        SPARE: read.listing("SIGNER_AWS_SPARE", ""),
        TREASURY: read.listing("SIGNER_AWS_TREASURY", "")[:1],
    }
    if read.faults:
        raise Misconfigured(" ".join(read.faults))
    keys = _from_token(module, label, pin) | _from_aws(aws)
    if keystore:
        keys = read_keystore(Path(keystore), password) | keys
    if not keys.for_calls:
        raise Misconfigured(
            "No relayer's key is configured: give a keystore, a PKCS#11 token or AWS KMS keys."
        )
    service = SigningService(keys, chains, Journal(journal))
    folder = read.text("SIGNER_TLS_FOLDER", "")
    return Configuration(listen, Certificates.in_folder(folder) if folder else None, service)


def _home(read: "_Reader") -> ServedChain:
    # CHAIN_ and RELAY_ are the service's variables: a limit that an operator changes is the same on both sides.
    return _served(
        read,
        read.number("CHAIN_ID"),
        node_url=read.text("SIGNER_RPC_URL"),
        key_managers=read.listing("SIGNER_TRUSTED_KEY_MANAGERS", KEY_MANAGERS),
        profiles=read.listing("SIGNER_TRUSTED_PROFILES", PROFILES),
        fee_cap_wei=read.number("RELAY_FEE_CAP_WEI", 20 * 10**9),
        gas_per_hour=read.number("SIGNER_GAS_PER_HOUR", 10**9),
        deployment_gas_per_day=read.number("SIGNER_DEPLOYMENT_GAS_PER_DAY", 10**8),
        below_wei=read.number("RELAY_TOP_UP_BELOW_WEI", 5 * 10**16),
        daily_wei=read.number("RELAY_TOP_UP_DAILY_WEI", 5 * 10**18),
    )


def _further(read: "_Reader") -> list[ServedChain]:
    """Return the chains of `CHAINS`. What is trusted at home counts on none of them."""
    chains: dict[int, ServedChain] = {}
    home = read.text("CHAIN_ID", "0")
    for name in read.listing("CHAINS", ""):
        if not name.isdecimal() or not int(name) or name == home or int(name) in chains:
            read.faults.append("CHAINS must list the ids of chains besides CHAIN_ID, each once.")
            continue
        service, own = f"CHAIN_{name}", f"SIGNER_{name}"
        below_wei = read.number(f"{service}_TOP_UP_BELOW_WEI", 10**16)
        chains[int(name)] = _served(
            read,
            int(name),
            node_url=read.text(f"{own}_RPC_URL"),
            key_managers=read.listing(f"{own}_TRUSTED_KEY_MANAGERS", KEY_MANAGERS),
            profiles=read.listing(f"{own}_TRUSTED_PROFILES", PROFILES),
            fee_cap_wei=read.number(f"{service}_FEE_CAP_WEI", 100 * 10**9),
            # Gas is worth the same everywhere, so its limits are those of home unless a chain has its own.
            gas_per_hour=read.number(f"{own}_GAS_PER_HOUR", read.number("SIGNER_GAS_PER_HOUR", 10**9)),
            deployment_gas_per_day=read.number(
                f"{own}_DEPLOYMENT_GAS_PER_DAY", read.number("SIGNER_DEPLOYMENT_GAS_PER_DAY", 10**8)
            ),
            below_wei=below_wei,
            daily_wei=read.number(f"{service}_TOP_UP_DAILY_WEI", 100 * below_wei),
        )
    return list(chains.values())


def _served(
    read: "_Reader",
    chain_id: int,
    *,
    node_url: str,
    key_managers: list[str],
    profiles: list[str],
    fee_cap_wei: int,
    gas_per_hour: int,
    deployment_gas_per_day: int,
    below_wei: int,
    daily_wei: int,
) -> ServedChain:
    """Return a chain with these terms, and those that all chains share."""
    policy = Policy(
        TransactionLimits(chain_id, fee_cap_wei, max_gas=read.number("RELAY_MAX_GAS", 5_000_000)),
        gas_per_hour=gas_per_hour,
        max_gas_untrusted=_MAX_GAS_UNTRUSTED if read.text("CHAIN_TRUST", "strict") == "open" else 0,
        # The service tops up to four times this.
        transfer_wei=4 * below_wei,
        transfers_per_day_wei=daily_wei,
        deploys=DeploymentLimits(
            max_gas=read.number("RELAY_DEPLOYMENT_MAX_GAS", 1_500_000),
            profiles=[name.lower() for name in profiles],
            key_managers=[name.lower() for name in key_managers],
        ),
        deployment_gas_per_day=deployment_gas_per_day,
    )
    targets = NodeTargets(node_url, chain_id=chain_id, key_managers=key_managers, profiles=profiles)
    return ServedChain(policy, targets)


def _from_token(module: str, label: str, pin: str) -> Keyring:
    if not module:
        return Keyring.of([])
    from signer.tokens import Token  # Loads the library, which only installations with a device have.

    token = Token(module, label=label, pin=pin)
    return Keyring.of(token.keys(RELAYERS), token.keys(SPARE), only_treasury(token.keys(TREASURY)))


def _from_aws(names: Mapping[str, list[str]]) -> Keyring:
    if not any(names.values()):
        return Keyring.of([])
    from signer.aws import KmsKey, kms_client

    client = kms_client()
    return Keyring.of(
        [KmsKey(client, name) for name in names[RELAYERS]],
        [KmsKey(client, name) for name in names[SPARE]],
        next((KmsKey(client, name) for name in names[TREASURY]), None),
    )


class _Reader:
    """Reads variables, and keeps a sentence for each that is missing or malformed."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self.faults: list[str] = []

    def text(self, name: str, default: str | None = None) -> str:
        value = self._environment.get(name, "") or default
        if value is None:
            self.blame(f"Set {name}.")
        return value or ""

    def number(self, name: str, default: int | None = None) -> int:
        value = self.text(name, None if default is None else str(default))
        if value and not value.isdecimal():
            self.blame(f"{name} must be a whole number.")
        return int(value) if value.isdecimal() else 0

    def blame(self, fault: str) -> None:
        """Keep the fault of a variable that several chains read once."""
        if fault not in self.faults:
            self.faults.append(fault)

    def listing(self, name: str, default: str) -> list[str]:
        return [item.strip() for item in self.text(name, default).split(",") if item.strip()]

    def secret(self, name: str) -> str:
        """Return a secret from the variable, or from the file that `NAME_FILE` names."""
        file = self._environment.get(f"{name}_FILE", "")
        if not file:
            return self.text(name)
        try:
            # Some editors put a byte order mark in front.
            text = Path(file).read_text(encoding="utf-8-sig").strip()
        except OSError:
            self.faults.append(f"{name}_FILE names a file that cannot be read.")
            return ""
        if text[:1] in {"'", '"'}:
            self.faults.append(f"{name}_FILE names a file whose text is in quotes; remove them.")
        return text
