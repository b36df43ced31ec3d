"""Read entries as leaves of a root, each with the salts and hashes that its text needs."""

from array import array
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from gateway.common import db
from gateway.common.statements import Statements, fill
from proofs.leaf_texts import EntryRow, Hidden, hidden, leaf_text
from proofs.merkle import leaf_hash

# Sentinel: the salt is missing, but the entry was not erased. It matches no signed leaf.
_LOST = Hidden("", "")
# The number of rows to read at a time.
PAGE_SIZE = 500


class _Sql(Statements, file=__file__):
    leaves: str


_BETWEEN = fill(_Sql.leaves, {"which": "entry.id > %(after)s AND entry.id <= %(upto)s"})
_LISTED = fill(_Sql.leaves, {"which": "entry.id = ANY(%(ids)s::bigint[])"})


class Leaf(NamedTuple):
    """
    An entry that a root covers or will cover; `secret` is None after the person was erased.

    `is_forged_erasure` is true for an entry whose hashes are stored as if its owner's account had been deleted.
    """

    row: EntryRow
    words: Hidden
    secret: bytes | None
    is_forged_erasure: bool = False

    def text(self, seed: bytes) -> str:
        return leaf_text(self.row, self.words, seed)

    @property
    def is_erased(self) -> bool:
        return self.secret is None and self.words != _LOST


class Hashed(NamedTuple):
    """The ids and the concatenated hashes of leaves."""

    ids: "array[int]"
    hashes: bytes


def hashed(leaves: Iterable[Leaf], seed: bytes) -> Hashed:
    ids, hashes = array("q"), bytearray()
    for leaf in leaves:
        ids.append(leaf.row.id)
        hashes += leaf_hash(leaf.text(seed))
    return Hashed(ids, bytes(hashes))


def between(*, after: int, upto: int) -> Iterator[Leaf]:
    """Yield the entries after `after`, up to and including `upto`, in the order of ids."""
    # The limit is part of the text, so that a cached plan takes it into account.
    page = f"{_BETWEEN} LIMIT {PAGE_SIZE}"
    while rows := db.all_rows(page, {"after": after, "upto": upto}):
        yield from map(_leaf, rows)
        after = rows[-1][0]


def listed(ids: list[int]) -> dict[int, Leaf]:
    """Return these entries by their ids."""
    rows: Iterator[Leaf] = map(_leaf, db.all_rows(_LISTED, {"ids": ids}))
    return {leaf.row.id: leaf for leaf in rows}


def _leaf(columns: tuple[Any, ...]) -> Leaf:
    *own, salt, profile_hash, reason_hash, is_owner_erased = columns
    row = EntryRow(*own)
    if profile_hash is not None and is_owner_erased:
        return Leaf(row, Hidden(profile_hash, reason_hash), None)
    is_forged = profile_hash is not None
    return (
        Leaf(row, _LOST, None, is_forged)
        if salt is None
        else Leaf(row, hidden(row, salt), bytes(salt), is_forged)
    )
