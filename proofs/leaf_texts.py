"""
The texts that are hashed and signed: of an entry, as a leaf of the tree, and of a root.

A text is JSON of ASCII characters, with its members sorted by name and no spaces. A leaf contains every column of its
entry, but the profile's address and the reason are replaced by hashes, each with its own salt. Each can be disclosed
alone, and neither after the account's secret was deleted. The leaf has a salt, too, because its hash appears in the
proofs of other entries; the salt prevents guessing the entry from the hash.
"""

import hmac
import json
from datetime import UTC, datetime
from hashlib import sha256
from typing import NamedTuple

# The lengths of random secrets and of the salts derived from them.
SECRET_BYTES, SALT_BYTES = 32, 16
_compact = json.JSONEncoder(separators=(",", ":")).encode


class EntryRow(NamedTuple):
    """An entry's columns, and the address of its account's profile."""

    id: int
    account_id: int
    account_version: int
    actor_id: int | None
    amount: int
    balance_after: int
    balance_before: int
    created_at: datetime
    key: str
    source: str
    reason: str
    profile: str


class Salted(NamedTuple):
    """A text and its salt; the leaf contains the hash of both."""

    salt: bytes
    text: str

    @property
    def hash(self) -> str:
        return sha256(self.salt + self.text.encode()).hexdigest()


class Hidden(NamedTuple):
    """The hashes of profile and reason in a leaf."""

    profile: str
    reason: str


def disclosed(row: EntryRow, secret: bytes) -> tuple[Salted, Salted]:
    """Return profile and reason with their salts, which are derived from the account's secret."""
    return (
        Salted(_derived(secret, f"profile:{row.id}"), row.profile),
        Salted(_derived(secret, f"reason:{row.id}"), row.reason),
    )


def hidden(row: EntryRow, secret: bytes) -> Hidden:
    return Hidden(*(salted.hash for salted in disclosed(row, secret)))


def leaf_text(row: EntryRow, words: Hidden, seed: bytes) -> str:
    """Return the text of an entry; its salt is derived from the seed of its root."""
    return _compact(
        {
            "account": row.account_id,
            "accountVersion": row.account_version,
            "actor": row.actor_id,
            "amount": row.amount,
            "balanceAfter": row.balance_after,
            "balanceBefore": row.balance_before,
            "createdAt": moment(row.created_at),
            "entry": row.id,
            "key": row.key,
            "profile": words.profile,
            "reason": words.reason,
            "salt": _derived(seed, str(row.id)).hex(),
            "source": row.source,
        }
    )


def root_text(
    *, number: int, closed_at: datetime, entry_count: int, last_entry_id: int, tree: str, previous: str
) -> str:
    """Return the text of a root. The service signs it, and the next root contains its hash."""
    return _compact(
        {
            "closedAt": moment(closed_at),
            "entries": entry_count,
            "lastEntry": last_entry_id,
            "previous": previous,
            "root": number,
            "tree": tree,
        }
    )


def root_hash(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def moment(time: datetime) -> str:
    """Return the time in UTC, to the microsecond that PostgreSQL keeps."""
    return time.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def _derived(secret: bytes, purpose: str) -> bytes:
    return hmac.digest(secret, purpose.encode(), "sha256")[:SALT_BYTES]
