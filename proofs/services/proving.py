"""Prove to the owner of entries that signed roots cover them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from credits.models import CreditEntry
from gateway.common import db
from gateway.common.statements import Statements
from proofs.leaf_texts import Salted, disclosed
from proofs.merkle import path_places
from proofs.models import LedgerRoot
from proofs.services.leaves import Leaf, listed
from proofs.services.roots import published


class _Sql(Statements, file=__file__, root_columns=db.columns(LedgerRoot, "root")):
    roots: str
    nodes: str


@dataclass(frozen=True, kw_only=True)
class Proof:
    """An entry with the hashes that lead to its root; `root` is None until one covers the entry."""

    entry: int
    leaf: str | None = None
    # From the leaf to the root: each sibling's hash, by its side, left or right.
    path: Sequence[dict[str, str]] = ()
    root: dict[str, str] | None = None
    disclosed: dict[str, dict[str, str]] | None = None


def prove(entries: Iterable[CreditEntry]) -> list[Proof]:
    """Return a proof for each entry in its current state; the proof of an entry that was changed does not verify."""
    ids = [entry.pk for entry in entries]
    leaves = listed(ids)
    under = {row[0]: row[1:] for row in db.all_rows(_Sql.roots, {"ids": ids}) if row[1] is not None}
    roots = {entry_id: db.instance(LedgerRoot, columns[2:]) for entry_id, columns in under.items()}
    paths = _paths({entry_id: (roots[entry_id], columns[0]) for entry_id, columns in under.items()})
    return [
        Proof(
            entry=entry_id,
            leaf=leaves[entry_id].text(under[entry_id][1]),
            path=paths[entry_id],
            root=published(roots[entry_id]),
            disclosed=_disclosed(leaves[entry_id]),
        )
        if entry_id in under
        else Proof(entry=entry_id)
        for entry_id in ids
    ]


def _paths(places: dict[int, tuple[LedgerRoot, int]]) -> dict[int, list[dict[str, str]]]:
    """Read the paths of all leaves in one statement."""
    steps = [
        (entry_id, root.number, side, place)
        for entry_id, (root, leaf) in places.items()
        for side, place in path_places(leaf, root.entry_count)
    ]
    wanted: dict[str, Any] = {"roots": [step[1] for step in steps], "places": [step[3] for step in steps]}
    paths: dict[int, list[dict[str, str]]] = {entry_id: [] for entry_id in places}
    for (entry_id, _, side, _), (node,) in zip(steps, db.all_rows(_Sql.nodes, wanted), strict=True):
        paths[entry_id].append({side: node})
    return paths


def _disclosed(leaf: Leaf) -> dict[str, dict[str, str]]:
    """Return the texts behind the hashes, with their salts; empty after the person was erased."""
    if leaf.secret is None:
        return {}
    names: tuple[tuple[str, Salted], ...] = tuple(
        zip(("profile", "reason"), disclosed(leaf.row, leaf.secret), strict=True)
    )
    return {name: {"salt": salted.salt.hex(), "text": salted.text} for name, salted in names}
