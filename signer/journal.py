"""
What was signed, kept in one SQLite file: an entry is on the disk before its signature leaves the process.

The file is locked by the process that has opened it, so that no second signer can sign with another memory.
"""

import sqlite3
from collections.abc import Sequence
from typing import NamedTuple

from signer.policy import Entry, Kind


class Slot(NamedTuple):
    """An account nonce of one account."""

    address: str
    chain_id: int
    account_nonce: int


class JournalInUse(Exception):
    """Another process has the journal open."""


class Journal:
    """One file. For one thread at a time."""

    def __init__(self, path: str) -> None:
        self._file = sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)
        try:
            for statement in _OPENING:
                self._file.execute(statement)
        except sqlite3.OperationalError as error:
            self._file.close()
            raise JournalInUse(str(error)) from error

    def close(self) -> None:
        """Let another process open it."""
        self._file.close()

    def signed_on(self, slot: Slot) -> list[Entry]:
        """Return what was signed on an account nonce, in the order of signing."""
        return [
            Entry(Kind(kind), digest, content, max_fee, int(amount), signature, transaction_hash)
            for kind, digest, content, max_fee, amount, signature, transaction_hash in self._file.execute(
                _SELECT, slot
            )
        ]

    def record(self, entries: Sequence[tuple[Slot, Entry]], *, now: float) -> None:
        """Write them down; they are on the disk when this returns, all or none."""
        rows = [(*slot, *entry[:4], str(entry.amount), *entry[5:], now) for slot, entry in entries]
        self._file.execute("BEGIN IMMEDIATE")
        try:
            self._file.executemany(_INSERT, rows)
        except BaseException:
            self._file.execute("ROLLBACK")
            raise
        self._file.execute("COMMIT")

    def amounts_since(self, since: float) -> list[tuple[str, float, int]]:
        """Return for each account nonce used since then: whose it is, when, and the largest amount."""
        largest: dict[tuple[str, int], tuple[float, int]] = {}
        for address, nonce, signed_at, amount in self._file.execute(_AMOUNTS, (since,)):
            _, before = largest.get((address, nonce), (0.0, 0))
            largest[address, nonce] = signed_at, max(before, int(amount))
        return [(address, signed_at, amount) for (address, _), (signed_at, amount) in largest.items()]

    def count(self) -> int:
        """Return how many transactions were ever signed."""
        (count,) = self._file.execute("SELECT coalesce(max(rowid), 0) FROM signed").fetchone()
        return int(count)


_OPENING = (
    # Before anything else, so that the lock is taken with the first statement and never given back.
    "PRAGMA locking_mode = EXCLUSIVE",
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = FULL",
    """CREATE TABLE IF NOT EXISTS signed (
        address TEXT NOT NULL, chain_id INTEGER NOT NULL, account_nonce INTEGER NOT NULL, kind TEXT NOT NULL,
        digest BLOB NOT NULL, content BLOB NOT NULL, max_fee_wei INTEGER NOT NULL, amount TEXT NOT NULL,
        signature BLOB NOT NULL, transaction_hash TEXT NOT NULL, signed_at REAL NOT NULL,
        UNIQUE (address, chain_id, account_nonce, digest)
    ) STRICT""",
    "CREATE INDEX IF NOT EXISTS signed_by_time ON signed (signed_at)",
    "BEGIN IMMEDIATE",
    "COMMIT",
)
_SELECT = """
SELECT kind, digest, content, max_fee_wei, amount, signature, transaction_hash FROM signed
WHERE address = ? AND chain_id = ? AND account_nonce = ? ORDER BY rowid
"""
_INSERT = "INSERT INTO signed VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_AMOUNTS = "SELECT address, account_nonce, signed_at, amount FROM signed WHERE signed_at > ? ORDER BY rowid"
