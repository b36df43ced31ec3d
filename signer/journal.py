"""
What was signed, kept in one SQLite file: an entry is on the disk before its signature leaves the process.

The file is locked by the process that has opened it, so that no second signer can sign with another memory. Of account
nonces that were used up long ago, all that it keeps is that they are.
"""

import sqlite3
from collections.abc import Sequence
from typing import NamedTuple

from signer.policy import Entry, Kind


class Account(NamedTuple):
    """An account on a chain."""

    address: str
    chain_id: int


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
        # Of each account, the first account nonce that is not forgotten.
        self._forgotten: dict[Account, int] = {
            Account(*account): below for *account, below in self._file.execute(_FORGOTTEN)
        }

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

    def has_forgotten(self, slot: Slot) -> bool:
        """Return whether the account nonce is one of those of which nothing else is known any more."""
        return slot.account_nonce < self._forgotten.get(Account(slot.address, slot.chain_id), 0)

    def forget(self, account: Account, *, below: int, signed_before: float) -> tuple[int, bool]:
        """
        Forget account nonces in their order: those below this one, up to the first with something younger.

        Does a limited number; return how many entries are gone, and whether that was all.
        """
        rows = self._file.execute(_OLDEST, (*account, below, _MOST_AT_ONCE)).fetchall()
        is_done = len(rows) < _MOST_AT_ONCE
        young = next((nonce for nonce, signed_at in rows if signed_at >= signed_before), None)
        if young is not None:
            below, is_done = young, True
        elif not is_done:
            # More may be signed on the last of them.
            below, _ = rows[-1]
        gone = sum(nonce < below for nonce, _ in rows)
        if gone:
            self._file.execute("BEGIN IMMEDIATE")
            try:
                self._file.execute(_REMEMBER_FORGOTTEN, (*account, below))
                self._file.execute(_FORGET, (*account, below))
            except BaseException:
                self._file.execute("ROLLBACK")
                raise
            self._file.execute("COMMIT")
            self._forgotten[account] = below
        return gone, is_done

    def size(self) -> int:
        """Return how large the file is; what was forgotten leaves room in it for what comes."""
        (pages,), (size,) = (
            self._file.execute(f"PRAGMA {name}").fetchone() for name in ("page_count", "page_size")
        )
        return int(pages) * int(size)

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
    """CREATE TABLE IF NOT EXISTS forgotten (
        address TEXT NOT NULL, chain_id INTEGER NOT NULL, below INTEGER NOT NULL, PRIMARY KEY (address, chain_id)
    ) STRICT""",
    "BEGIN IMMEDIATE",
    "COMMIT",
)
# More than is ever signed on one account nonce.
_MOST_AT_ONCE = 5_000
_FORGOTTEN = "SELECT address, chain_id, below FROM forgotten"
# The newest row stays, because its number is how many there were.
_OLDEST = """
SELECT account_nonce, signed_at FROM signed
WHERE address = ? AND chain_id = ? AND account_nonce < ? AND rowid < (SELECT max(rowid) FROM signed)
ORDER BY account_nonce LIMIT ?
"""
_REMEMBER_FORGOTTEN = """
INSERT INTO forgotten VALUES (?, ?, ?)
ON CONFLICT (address, chain_id) DO UPDATE SET below = max(below, excluded.below)
"""
_FORGET = """
DELETE FROM signed WHERE address = ? AND chain_id = ? AND account_nonce < ?
AND rowid < (SELECT max(rowid) FROM signed)
"""
_SELECT = """
SELECT kind, digest, content, max_fee_wei, amount, signature, transaction_hash FROM signed
WHERE address = ? AND chain_id = ? AND account_nonce = ? ORDER BY rowid
"""
_INSERT = "INSERT INTO signed VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_AMOUNTS = "SELECT address, account_nonce, signed_at, amount FROM signed WHERE signed_at > ? ORDER BY rowid"
