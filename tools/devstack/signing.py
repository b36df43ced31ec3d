"""A separate signer, as in `compose.yaml`, so that no process of the service has a key."""

import secrets
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import ClassVar

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from devstack.debian import unpacked
from devstack.django_process import process_environment
from devstack.environment import Secrets, without_keys
from devstack.files import PROJECT, write_json
from devstack.ports import free_port
from devstack.services.outside import Outside
from devstack.services.server import Server, status_of
from gateway.chain.signing import derive_keys
from signer.client import Certificates, SignerAway, SignerClient
from signer.keys import RELAYERS, SPARE, TREASURY, write_keystore

_SPARE = 4
# A low cost of scrypt, because the password is stored beside the keys.
_WORK = 2
_TOKEN = "signer"
# The service's variables that the signer also reads.
_SHARED = {
    *("CHAIN_TRUST", "RELAY_FEE_CAP_WEI", "RELAY_MAX_GAS", "RELAY_DEPLOYMENT_MAX_GAS"),
    *("RELAY_TOP_UP_BELOW_WEI", "RELAY_TOP_UP_DAILY_WEI"),
}
_MODULE, _UTILITY = "usr/lib/softhsm/libsofthsm2.so", "usr/bin/softhsm2-util"


class KeyPlace(StrEnum):
    """The place of a stack's keys."""

    LOCAL = "local"  # in web and the relay worker
    KEYSTORE = "keystore"
    PKCS11 = "pkcs11"
    KMS = "kms"


@dataclass(frozen=True)
class SignerEndpoint:
    """The signer's address; with TLS also the certificate files of both sides."""

    listen: str
    url: str
    its_certificates: Certificates | None = None
    certificates: Certificates | None = None


class Signer(Server):
    """The signer, with its journal in the stack's folder."""

    name: ClassVar[str] = "signer"

    def __init__(self, log_directory: Path, environment: Mapping[str, str], endpoint: SignerEndpoint) -> None:
        super().__init__(PROJECT, log_directory, environment)
        self._client = SignerClient(endpoint.url, timeout_seconds=2, certificates=endpoint.certificates)

    def command(self) -> list[str]:
        """Return the foreground signer."""
        return [sys.executable, "-m", "signer"]

    def answers(self) -> bool:
        """Return whether it signs."""
        try:
            return self._client.read("/health") == "ok\n"
        except SignerAway:
            return False


class KmsStub(Server):
    """The stub of AWS KMS, with the keys of a file."""

    name: ClassVar[str] = "kms"

    def __init__(self, log_directory: Path, keys: Path) -> None:
        super().__init__(PROJECT, log_directory)
        self._port, self._keys = free_port(), keys

    def command(self) -> list[str]:
        """Return the foreground stub."""
        return [sys.executable, "-m", "devstack.kms", str(self._port), str(self._keys)]

    def answers(self) -> bool:
        """Return whether it takes requests."""
        # An unsupported method gets an error response, so the stub is up.
        return status_of(self.url) == 501

    @property
    def url(self) -> str:
        """Its endpoint."""
        return f"http://127.0.0.1:{self._port}"


@dataclass(frozen=True)
class Signing:
    """The signer's processes in the order of their start, and the settings of its clients."""

    processes: Sequence[Server]
    settings: dict[str, str]
    # None if web and the relay worker have the keys.
    journal: Path | None = None


def signing_at(
    place: KeyPlace,
    services: Outside,
    kept: Secrets,
    directory: Path,
    settings: Mapping[str, str],
    endpoint: SignerEndpoint | None = None,
) -> Signing:
    """
    Store the keys in their place unless they are there; `settings` has the signer's limits.

    Without an endpoint, the signer listens on a socket in the stack's folder.
    """
    if place == KeyPlace.LOCAL:
        return Signing([], dict(settings))
    endpoint = endpoint or _socket_endpoint(directory)
    folder = directory / "signer"
    keys = {
        RELAYERS: kept.relayer_keys,
        SPARE: derive_keys(kept.mnemonic, count=_SPARE),
        TREASURY: [kept.treasury_key],
    }
    before: list[Server] = []
    if place == KeyPlace.KEYSTORE:
        of_keys = _in_keystore(folder, keys, password=kept.derived("keystore"))
    elif place == KeyPlace.PKCS11:
        of_keys = _in_token(folder, keys, pin=kept.derived("token")[:16])
    else:
        stub = KmsStub(directory / "log", folder / "kms.json")
        of_keys, before = _in_cloud(folder, keys, stub), [stub]
    implementations = services.world.implementations
    environment = {
        "SIGNER_LISTEN": endpoint.listen,
        **_files(endpoint.its_certificates),
        "CHAIN_ID": str(services.chain_id),
        "SIGNER_RPC_URL": services.rpc_url,
        "SIGNER_JOURNAL": str(folder / "journal"),
        "SIGNER_GAS_PER_HOUR": str(10**13),
        **{name: text for name, text in settings.items() if name in _SHARED},
        "SIGNER_TRUSTED_KEY_MANAGERS": implementations.key_manager,
        "SIGNER_TRUSTED_PROFILES": implementations.universal_profile,
    }
    signer = Signer(directory / "log", process_environment(environment | of_keys), endpoint)
    of_service = {"SIGNER_URL": endpoint.url, **_files(endpoint.certificates)}
    return Signing([*before, signer], without_keys(settings) | of_service, folder / "journal")


def _in_keystore(folder: Path, keys: Mapping[str, Sequence[str]], *, password: str) -> dict[str, str]:
    if not folder.exists():
        for kind, texts in keys.items():
            for text in texts:
                write_keystore(folder, kind, bytes.fromhex(text[2:]), password, work=_WORK)
    return {"SIGNER_KEYSTORE": str(folder), "SIGNER_KEYSTORE_PASSWORD": password}


def _in_token(folder: Path, keys: Mapping[str, Sequence[str]], *, pin: str) -> dict[str, str]:
    module, utility = softhsm()
    tokens, configuration = folder / "tokens", folder / "softhsm.conf"
    environment = {"SOFTHSM2_CONF": str(configuration)}
    if not tokens.exists():
        tokens.mkdir(parents=True)
        configuration.write_text(
            f"directories.tokendir = {tokens}\nobjectstore.backend = file\nlog.level = ERROR\n"
        )

        def softhsm2(*arguments: str) -> None:
            command = [str(utility), "--module", str(module), *arguments, "--pin", pin]
            subprocess.run(command, check=True, capture_output=True, env=process_environment(environment))

        softhsm2("--init-token", "--free", "--label", _TOKEN, "--so-pin", pin)
        file = folder / "key.pem"
        for kind, texts in keys.items():
            for text in texts:
                file.write_bytes(_pem(text))
                place = ["--label", kind, "--id", secrets.token_hex(8)]
                softhsm2("--import", str(file), "--token", _TOKEN, *place)
        file.unlink()
    return environment | {
        "SIGNER_PKCS11_MODULE": str(module),
        "SIGNER_PKCS11_TOKEN": _TOKEN,
        "SIGNER_PKCS11_PIN": pin,
    }


def softhsm() -> tuple[Path, Path]:
    """Return SoftHSM's module and utility: the installed ones, or from Debian's packages."""
    system = Path("/")
    installed = (system / _MODULE).exists() and (system / _UTILITY).exists()
    root = system if installed else unpacked("softhsm", "libsofthsm2", "softhsm2")
    return root / _MODULE, root / _UTILITY


def _in_cloud(folder: Path, keys: Mapping[str, Sequence[str]], stub: KmsStub) -> dict[str, str]:
    ids = {kind: [f"{kind}-{number}" for number in range(len(texts))] for kind, texts in keys.items()}
    write_json(
        folder / "kms.json",
        {name: text for kind, texts in keys.items() for name, text in zip(ids[kind], texts, strict=True)},
    )
    return {
        "AWS_ENDPOINT_URL_KMS": stub.url,
        "AWS_ACCESS_KEY_ID": "stub",
        "AWS_SECRET_ACCESS_KEY": "stub",
        "AWS_DEFAULT_REGION": "eu-central-1",
        **{f"SIGNER_AWS_{kind.upper()}": ",".join(names) for kind, names in ids.items()},
    }


def _pem(key: str) -> bytes:
    private = ec.derive_private_key(int(key, 16), ec.SECP256K1())
    return private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def _socket_endpoint(directory: Path) -> SignerEndpoint:
    url = f"unix://{directory.resolve() / 'signer.sock'}"
    return SignerEndpoint(url, url)


def _files(certificates: Certificates | None) -> dict[str, str]:
    if certificates is None:
        return {}
    return {"SIGNER_TLS_FOLDER": str(Path(certificates.certificate).parent)}
