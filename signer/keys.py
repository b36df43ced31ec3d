"""Keys: in this process's memory, from an encrypted keystore, or in a device that signs digests."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from coincurve import PrivateKey
from eth_keyfile.keyfile import create_keyfile_json, decode_keyfile_json

from signer.transactions import address_of

RELAYERS, SPARE, TREASURY = "relayers", "spare", "treasury"


class KeyUnusable(Exception):
    """A key cannot be read, or its device does not respond. The text contains no secret."""


class Key(Protocol):
    """One key of the curve secp256k1."""

    @property
    def address(self) -> str:
        """The key's EIP-55 address."""
        ...

    def sign(self, digest: bytes) -> bytes:
        """
        Return the signature over a digest: 65 bytes of r, the lower s and the recovery id.

        Raises:
            KeyUnusable: the key's device does not respond, or refuses to sign.
        """
        ...


class MemoryKey:
    """A key in this process. No repr and no error shows it."""

    def __init__(self, secret: bytes) -> None:
        self._key = PrivateKey(secret)
        self.address = address_of(self._key.public_key)

    def __repr__(self) -> str:
        return f"MemoryKey({self.address})"

    def sign(self, digest: bytes) -> bytes:
        """See `Key`."""
        return self._key.sign_recoverable(digest, hasher=None)


@dataclass(frozen=True)
class Keyring:
    """All keys of a signer, by address: relayers in service, spare relayers that staff may add, and the treasury."""

    relayers: dict[str, Key]
    spare: dict[str, Key]
    treasury: Key | None

    @classmethod
    def of(cls, relayers: Iterable[Key], spare: Iterable[Key] = (), treasury: Key | None = None) -> "Keyring":
        """Return a keyring of these keys."""
        return cls({key.address: key for key in relayers}, {key.address: key for key in spare}, treasury)

    def __or__(self, other: "Keyring") -> "Keyring":
        """
        Return the keys of both keyrings.

        Raises:
            KeyUnusable: both have a treasury.
        """
        treasuries = [ring.treasury for ring in (self, other) if ring.treasury]
        return Keyring(self.relayers | other.relayers, self.spare | other.spare, only_treasury(treasuries))

    @property
    def for_calls(self) -> dict[str, Key]:
        """The keys of all relayers, in service or spare."""
        return self.relayers | self.spare


def only_treasury(keys: Sequence[Key]) -> Key | None:
    """
    Return the treasury's key, if there is one.

    Raises:
        KeyUnusable: there is more than one.
    """
    if len(keys) > 1:
        raise KeyUnusable("there is more than one treasury")
    return keys[0] if keys else None


def read_keystore(directory: Path, password: str) -> Keyring:
    """
    Return the keys in the keystore files (version 3) of the folders `relayers`, `spare` and `treasury`.

    Raises:
        KeyUnusable: a file cannot be decrypted, or there is more than one treasury.
    """
    relayers, spare, treasuries = (
        [_decrypted(file, password) for file in sorted((directory / kind).glob("*")) if _is_keystore(file)]
        for kind in (RELAYERS, SPARE, TREASURY)
    )
    return Keyring.of(relayers, spare, only_treasury(treasuries))


def _is_keystore(file: Path) -> bool:
    """Return whether a file is named as a keystore: `*.json`, or as geth names its own. A dot hides other files."""
    return not file.name.startswith(".") and (file.suffix == ".json" or file.name.startswith("UTC--"))


def _decrypted(file: Path, password: str) -> Key:
    try:
        return MemoryKey(decode_keyfile_json(json.loads(file.read_bytes()), password.encode()))
    except (ValueError, KeyError, TypeError, OSError) as error:
        # Raised without its cause, which may quote the file.
        raise KeyUnusable(
            f"{file.name} is not a keystore file, or has another password ({type(error).__name__})"
        ) from None


def write_keystore(
    directory: Path, kind: str, secret: bytes, password: str, *, work: int | None = None
) -> str:
    """
    Encrypt a key into the folder of its kind; return its address.

    `work` is scrypt's cost, for development and tests.
    """
    key = MemoryKey(secret)
    folder = directory / kind
    folder.mkdir(parents=True, exist_ok=True)
    content = create_keyfile_json(secret, password.encode(), iterations=work)
    file = folder / f"{key.address}.json"
    file.touch(mode=0o600)
    file.write_text(json.dumps(content), encoding="utf-8")
    return key.address
