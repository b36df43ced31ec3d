"""The environment of a dev stack's Django processes: random secrets, and settings made of them."""

import base64
import hashlib
import json
import math
import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ec import (
    SECP256R1,
    EllipticCurvePrivateKey,
    derive_private_key,
    generate_private_key,
)
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from devstack.files import read_json, write_json
from devstack.services.outside import Outside
from devstack.services.postgres import APPLICATION_ROLE
from devstack.world.keys import address_of
from gateway.processes import RANDOM, SIGNING, withheld

CREDIT_WEI = 10**12
CREDITS_PER_MAJOR_UNIT = 1_000  # the payout rate of every currency until staff add another one
_RELAYERS = 4
# Private keys of the curve are numbers below it.
_P256_ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
_KEYS = {"RELAY_RELAYER_KEYS", "RELAY_RELAYER_MNEMONIC", "RELAY_TREASURY_KEY"}


@dataclass(frozen=True)
class Staff:
    """A member of staff: password, and the base32 secret of the second factor."""

    username: str
    password: str
    totp_secret: str


@dataclass(frozen=True)
class Secrets:
    """All random values that a stack keeps across restarts."""

    django: str
    refresh: str
    signing_key: str
    relayer_keys: list[str]
    staff: Staff

    @property
    def treasury_key(self) -> str:
        """The key of the account that funds relayers."""
        return "0x" + self.derived("treasury")

    @property
    def ledger_key(self) -> str:
        """The key that signs the roots of the ledger."""
        secret = 1 + int(self.derived("ledger roots"), 16) % (_P256_ORDER - 1)
        return _pem(derive_private_key(secret, SECP256R1()))

    @property
    def mnemonic(self) -> str:
        """The seed phrase of further relayers' keys."""
        # This import takes a second, which processes without secrets need not wait.
        from eth_account.hdaccount.mnemonic import Mnemonic
        from eth_account.types import Language

        return str(
            Mnemonic(Language.ENGLISH).to_mnemonic(bytes.fromhex(self.derived("further relayers"))[:16])
        )

    def derived(self, purpose: str) -> str:
        """Return a secret derived from these, so that older data folders have it too."""
        return hashlib.sha256(f"{purpose} {self.refresh}".encode()).hexdigest()

    @property
    def relayer_addresses(self) -> list[str]:
        """The addresses of the relayers."""
        return [address_of(key) for key in self.relayer_keys]


def keep_secrets(path: Path, *, relayers: int = _RELAYERS) -> Secrets:
    """Return the secrets in `path`; create them on the first call."""
    kept = read_json(path)
    if kept:
        return Secrets(**{**kept, "staff": Staff(**kept["staff"])})
    made = _make(relayers)
    write_json(path, asdict(made))
    return made


def django_environment(
    services: Outside, secrets: Secrets, *, port: int, block_time: float | None
) -> dict[str, str]:
    """Return the settings of a stack whose web process listens on `port`."""
    return {
        "DJANGO_SETTINGS_MODULE": "devstack.settings",
        "SECRET_KEY": secrets.django,
        "ALLOWED_HOSTS": "127.0.0.1,localhost",
        "PUBLIC_URL": f"http://127.0.0.1:{port}",
        "DATABASE_URL": services.application_database_url,
        "REDIS_URL": services.redis_url,
        # Load generators represent many users, and each journey earns a whole badge.
        "EARNINGS_DAILY_CEILING": str(10**12),
        "CHAIN_ID": str(services.chain_id),
        "CHAIN_RPC_URLS": services.rpc_url,
        "CHAIN_BLOCK_SECONDS": str(max(1, math.ceil(block_time or 1))),
        "AUTH_SIGNING_KEYS": secrets.signing_key,
        **{name: secrets.derived(name) for name in RANDOM},
        "AUTH_REFRESH_SECRET": secrets.refresh,
        "AUTH_DOMAIN": f"127.0.0.1:{port}",
        # Demo profiles contain their name and picture, so no gateway is needed.
        "IPFS_GATEWAY_URL": "https://ipfs.invalid",
        "RELAY_RELAYER_KEYS": ",".join(secrets.relayer_keys),
        "RELAY_RELAYER_MNEMONIC": secrets.mnemonic,
        "RELAY_TREASURY_KEY": secrets.treasury_key,
        "LEDGER_SIGNING_KEY": secrets.ledger_key,
        "CREDIT_WEI": str(CREDIT_WEI),
        "CONFIRMATIONS": "2",
        "STRIPE_SECRET_KEY": services.stripe.secret_key,
        "STRIPE_WEBHOOK_SECRETS": services.stripe.webhook_secret,
        "STRIPE_API_BASE": services.stripe.url,
        **overriding(ADMOB_KEYS_URL=services.verifier_keys.url),
        "CORS_ALLOW_ALL_ORIGINS": "True",
        **_pooling(services),
    }


def _pooling(services: Outside) -> dict[str, str]:
    if not services.pools_transactions:
        return {}
    return {"DATABASE_POOLING": "transaction", "DATABASE_DIRECT_URL": services.direct_database_url}


def owner_environment(services: Outside) -> dict[str, str]:
    """Return the settings of a process that migrates as the owner of the tables."""
    return {
        "DATABASE_URL": services.database_url,
        "DATABASE_APPLICATION_ROLE": APPLICATION_ROLE,
        "DATABASE_POOLING": "session",
    }


def without_keys(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of a process that has no relayer key."""
    return {name: text for name, text in environment.items() if name not in _KEYS}


def overriding(**settings: object) -> dict[str, str]:
    """Return variables for `devstack.settings`, which override settings without a variable of their own."""
    return {f"DEVSTACK_{name}": json.dumps(value) for name, value in settings.items()}


def environment_of(process: str, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a process in `compose.yaml`, with only the secrets that it uses."""
    given = environment if process in SIGNING else without_keys(environment)
    hidden = dict.fromkeys(withheld(process), "")
    return {**given, **hidden, "GATEWAY_PROCESS": process}


def _make(relayers: int) -> Secrets:
    return Secrets(
        django=secrets.token_urlsafe(50),
        refresh=secrets.token_urlsafe(50),
        signing_key=_pem(generate_private_key(SECP256R1())),
        relayer_keys=["0x" + secrets.token_hex(32) for _ in range(relayers)],
        staff=Staff("staff", secrets.token_urlsafe(18), base64.b32encode(secrets.token_bytes(20)).decode()),
    )


def _pem(key: EllipticCurvePrivateKey) -> str:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
