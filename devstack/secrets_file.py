"""The secrets of one dev stack: random, made once, kept beside its data."""

import base64
import hashlib
import secrets
from dataclasses import asdict, dataclass
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from eth_account import Account

from devstack.private_file import read_json, write_json

_RELAYERS = 4


@dataclass(frozen=True)
class Staff:
    """A member of staff: password, and the base32 secret of the second factor."""

    username: str
    password: str
    totp_secret: str


@dataclass(frozen=True)
class Secrets:
    """Everything random that a stack keeps across restarts."""

    django: str
    refresh: str
    signing_key: str
    relayer_keys: list[str]
    staff: Staff

    @property
    def check_in(self) -> str:
        """What the daily seeds are made with; derived, so that stacks of an older make have it too."""
        return hashlib.sha256(f"check-in {self.refresh}".encode()).hexdigest()

    @property
    def ad_networks(self) -> str:
        """What the networks' secrets are sealed with."""
        return hashlib.sha256(f"ad networks {self.refresh}".encode()).hexdigest()

    @property
    def population(self) -> str:
        """What generated users follow from."""
        return hashlib.sha256(f"population {self.refresh}".encode()).hexdigest()

    @property
    def relayer_addresses(self) -> list[str]:
        """The accounts that pay for gas."""
        return [str(Account.from_key(key).address) for key in self.relayer_keys]


def keep_secrets(path: Path) -> Secrets:
    """Return the secrets in `path`; the first call makes them."""
    known = read_json(path)
    if known:
        return Secrets(**{**known, "staff": Staff(**known["staff"])})
    made = _make()
    write_json(path, asdict(made))
    return made


def _make() -> Secrets:
    key = generate_private_key(SECP256R1())
    return Secrets(
        django=secrets.token_urlsafe(50),
        refresh=secrets.token_urlsafe(50),
        signing_key=key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode(),
        relayer_keys=["0x" + secrets.token_hex(32) for _ in range(_RELAYERS)],
        staff=Staff("staff", secrets.token_urlsafe(18), base64.b32encode(secrets.token_bytes(20)).decode()),
    )
