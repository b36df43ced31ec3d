"""
The journal of signatures in one SQLite file: an entry is on disk before its signature leaves the process.

The process that opens the file locks it, so that a second signer cannot use the same journal. Entries of account nonces
that were used long ago are deleted; of these, the journal keeps only how far it was pruned.
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
    """One account nonce of an account."""

    address: str
    chain_id: int
    account_nonce: int


class JournalInUse(Exception):
    """Another process has the journal open."""


class Journal:
    """The journal's file, for one thread at a time. `prune_step` must exceed the entries of one account nonce."""

    def __init__(self, path: str, *, prune_step: int = 5_000) -> None:
        self._prune_step = prune_step
        self._file = sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)
        try:
            for statement in _OPENING:
                self._file.execute(statement)
        except sqlite3.OperationalError as error:
            self._file.close()
            raise JournalInUse(str(error)) from error
        # By account, the first account nonce that is not pruned.
        self._pruned_below: dict[Account, int] = {
            Account(*account): below for *account, below in self._file.execute(_PRUNED)
        }

    def close(self) -> None:
        """Release the lock, so that another process can open the file."""
        self._file.close()

    def signed_on(self, slot: Slot) -> list[Entry]:
        """Return the entries of an account nonce, in the order of signing."""
        return [
            Entry(Kind(kind), digest, content, max_fee, int(amount), signature, transaction_hash)
            for kind, digest, content, max_fee, amount, signature, transaction_hash in self._file.execute(
                _SELECT, slot
            )
        ]

    def record(self, entries: Sequence[tuple[Slot, Entry]], *, now: float) -> None:
        """Write all entries to disk, or none if this raises."""
        rows = [(*slot, *entry[:4], str(entry.amount), *entry[5:], now) for slot, entry in entries]
        with self._file:  # Commits, or rolls back after an error.
            self._file.execute("BEGIN IMMEDIATE")
            self._file.executemany(_INSERT, rows)

    def amounts_since(self, since: float) -> list[tuple[Account, Kind, float, int]]:
        """Return for each account nonce signed since then: its account, kind and time, and the largest amount."""
        largest: dict[Slot, tuple[Kind, float, int]] = {}
        for *slot, kind, signed_at, amount in self._file.execute(_AMOUNTS, (since,)):
            key = Slot(*slot)
            # The self-transfer that cancels a deployment leaves it one.
            first, _, before = largest.get(key, (Kind(kind), 0.0, 0))
            largest[key] = first, signed_at, max(before, int(amount))
        return [(Account(slot.address, slot.chain_id), *row) for slot, row in largest.items()]

    def is_pruned(self, slot: Slot) -> bool:
        """Return whether the entries of this account nonce are pruned."""
        return slot.account_nonce < self._pruned_below.get(Account(slot.address, slot.chain_id), 0)

    def prune(self, account: Account, *, below: int, signed_before: float) -> tuple[int, bool]:
        """
        Delete the entries of account nonces below `below`, up to the first nonce with an entry after `signed_before`.

        Deletes at most `prune_step` entries. Returns their number, and whether there are no more to delete.
        """
        rows = self._file.execute(_OLDEST, (*account, below, self._prune_step)).fetchall()
        is_done = len(rows) < self._prune_step
        young = next((nonce for nonce, signed_at in rows if signed_at >= signed_before), None)
        if young is not None:
            below, is_done = young, True
        elif not is_done:
            # The last account nonce may have further entries.
            below, _ = rows[-1]
        deleted = sum(nonce < below for nonce, _ in rows)
        if deleted:
            with self._file:
                self._file.execute("BEGIN IMMEDIATE")
                self._file.execute(_KEEP_PRUNED, (*account, below))
                self._file.execute(_DELETE, (*account, below))
            self._pruned_below[account] = below
        return deleted, is_done

    def size(self) -> int:
        """Return the size of the file; the space of deleted entries is reused."""
        (pages,), (size,) = (
            self._file.execute(f"PRAGMA {name}").fetchone() for name in ("page_count", "page_size")
        )
        return int(pages) * int(size)

    def count(self) -> int:
        """Return the number of transactions that were ever signed."""
        (count,) = self._file.execute("SELECT coalesce(max(rowid), 0) FROM signed").fetchone()
        return int(count)


_OPENING = (
    # Set first, so that the next statement takes the lock and the process keeps it.
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
_PRUNED = "SELECT address, chain_id, below FROM forgotten"
# Leaves out the newest row, because its rowid is the number of entries ever written.
_OLDEST = """
SELECT account_nonce, signed_at FROM signed
WHERE address = ? AND chain_id = ? AND account_nonce < ? AND rowid < (SELECT max(rowid) FROM signed)
ORDER BY account_nonce LIMIT ?
"""
_KEEP_PRUNED = """
INSERT INTO forgotten VALUES (?, ?, ?)
ON CONFLICT (address, chain_id) DO UPDATE SET below = max(below, excluded.below)
"""
_DELETE = """
DELETE FROM signed WHERE address = ? AND chain_id = ? AND account_nonce < ?
AND rowid < (SELECT max(rowid) FROM signed)
"""
_SELECT = """
SELECT kind, digest, content, max_fee_wei, amount, signature, transaction_hash FROM signed
WHERE address = ? AND chain_id = ? AND account_nonce = ? ORDER BY rowid
"""
_INSERT = "INSERT INTO signed VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_AMOUNTS = """
SELECT address, chain_id, account_nonce, kind, signed_at, amount FROM signed WHERE signed_at > ? ORDER BY rowid
"""
