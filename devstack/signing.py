"""A signer of its own beside the stack, as `compose.yaml` runs one: then no process of the service has a key."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from devstack.environment import Secrets, process_environment
from devstack.files import PROJECT
from devstack.services.server import Server
from devstack.services.stack import Services
from gateway.chain.signing import derive_keys
from signer.client import SignerAway, SignerClient
from signer.keys import RELAYERS, SPARE, TREASURY, write_keystore

_KEYS = ("RELAY_RELAYER_KEYS", "RELAY_RELAYER_MNEMONIC", "RELAY_TREASURY_KEY")
_SPARE = 4
# scrypt's cost: the keys of a dev stack lie beside their password.
_WORK = 2


class Signer(Server):
    """The signer, with its keystore, journal and socket in the stack's folder."""

    name: ClassVar[str] = "signer"

    def __init__(self, log_directory: Path, environment: Mapping[str, str]) -> None:
        super().__init__(PROJECT, log_directory, environment)
        self._client = SignerClient(environment["SIGNER_LISTEN"], timeout_seconds=2)

    def command(self) -> list[str]:
        """Return the foreground signer."""
        return [sys.executable, "-m", "signer"]

    def answers(self) -> bool:
        """Say whether it signs."""
        try:
            return self._client.read("/health") == "ok\n"
        except SignerAway:
            return False


def make_signer(services: Services, secrets: Secrets, directory: Path, settings: Mapping[str, str]) -> Signer:
    """Write the keystore where there is none, and return the signer; its limits are those of `settings`."""
    folder = directory / "signer"
    if not folder.exists():
        keys = {
            RELAYERS: secrets.relayer_keys,
            SPARE: derive_keys(secrets.mnemonic, count=_SPARE),
            TREASURY: [secrets.treasury_key],
        }
        for kind, texts in keys.items():
            for text in texts:
                write_keystore(folder, kind, bytes.fromhex(text[2:]), secrets.derived("keystore"), work=_WORK)
    implementations = services.world.implementations
    environment = {
        "SIGNER_LISTEN": _url(directory),
        "SIGNER_CHAIN_ID": str(services.chain_id),
        "SIGNER_RPC_URL": services.rpc_url,
        "SIGNER_KEYSTORE": str(folder),
        "SIGNER_KEYSTORE_PASSWORD": secrets.derived("keystore"),
        "SIGNER_JOURNAL": str(folder / "journal"),
        "SIGNER_GAS_PER_HOUR": str(10**13),
        "SIGNER_MAX_GAS": settings.get("RELAY_MAX_GAS", "3000000"),
        "SIGNER_TRUSTED_KEY_MANAGERS": implementations.key_manager,
        "SIGNER_TRUSTED_PROFILES": implementations.universal_profile,
    }
    return Signer(directory / "log", process_environment(environment))


def signing_elsewhere(settings: Mapping[str, str], directory: Path) -> dict[str, str]:
    """Return the settings of a service without keys, which asks that signer."""
    without_keys = {name: text for name, text in settings.items() if name not in _KEYS}
    return {**without_keys, "RELAY_SIGNER": "remote", "SIGNER_URL": _url(directory)}


def _url(directory: Path) -> str:
    return f"unix://{directory.resolve() / 'signer.sock'}"
