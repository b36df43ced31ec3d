"""
Compares the ledger with its signed roots, to detect entries that were changed or deleted after their root was closed.

The audit computes every root from the entries again. If the result differs, the stored hashes of the root's tree, which
must themselves lead to the signed root, show which entry differs.
"""

import logging
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from credits.models import CreditEntry, ReconciliationRun
from credits.services.reconciliation import Comparison, run
from proofs import leaf_texts, merkle
from proofs.keys import is_signed, public_keys
from proofs.models import LedgerRoot, RootTree
from proofs.services.erasure import ERASED
from proofs.services.leaves import Leaf, between, hashed
from proofs.services.roots import BEFORE_ALL, text_of

logger = logging.getLogger(__name__)


SIGNED = "a root carries the signature of the service"
NUMBERED = "roots are numbered without a gap"
CHAINED = "a root names the hash of the root before it"
KEPT = "the hashes beside a root lead to it"
UNCHANGED = "an entry is what its root was signed over"
PRESENT = "an entry under a root is still there"
NOT_ADDED = "no entry was added under a root"
WORDLESS = "an erased entry has no reason"
ERASED_WITH_OWNER = "an entry is erased only when its owner's account is deleted"


class Finding(NamedTuple):
    """A broken rule of a root, or of an entry under it."""

    rule: str
    root: int
    entry_id: int | None = None

    def as_row(self) -> Mapping[str, Any]:
        ids = {"root": str(self.root), **({"entry": str(self.entry_id)} if self.entry_id is not None else {})}
        return {"rule": self.rule, "have": "", "wanted": "", "ids": ids}


def audit(*, now: datetime) -> ReconciliationRun | None:
    """Compare every entry with its root; store and log each difference. None while another audit runs."""
    return run(kind=ReconciliationRun.Kind.ROOTS, compare=_compare, now=now)


def _compare() -> Comparison:
    counts = {"roots": 0, "entries": 0, "erased": 0, "open entries": 0}
    findings = list(find_differences(counts))
    for finding in findings:
        logger.error("ledger root audit: %s", finding)
    return Comparison(counts, [finding.as_row() for finding in findings])


def find_differences(counts: dict[str, int]) -> Iterator[Finding]:
    """Yield every difference between roots and entries, root by root, and count the compared roots and entries."""
    keys, last = public_keys(), None
    for root in LedgerRoot.objects.order_by("number").iterator():
        text = text_of(root)
        if root.number != (last.number + 1 if last else 1):
            yield Finding(NUMBERED, root.number)
        if root.previous != (leaf_texts.root_hash(text_of(last)) if last else ""):
            yield Finding(CHAINED, root.number)
        if not is_signed(text, root.signature, root.key_id, keys):
            yield Finding(SIGNED, root.number)
        leaves = between(after=last.last_entry_id if last else BEFORE_ALL, upto=root.last_entry_id)
        yield from _differences_under(root, leaves, counts)
        counts["roots"] += 1
        last = root
    newest = last.last_entry_id if last else BEFORE_ALL
    counts["open entries"] = CreditEntry.objects.filter(pk__gt=newest).count()


def _differences_under(root: LedgerRoot, leaves: Iterable[Leaf], counts: dict[str, int]) -> Iterator[Finding]:
    kept = RootTree.objects.filter(root=root).first()
    wrong: list[Finding] = []
    rebuilt = hashed(_examined(leaves, counts, root, wrong), bytes(kept.seed) if kept else b"")
    yield from wrong
    if kept is None:
        yield Finding(KEPT, root.number)
        return
    hashes, nodes = bytes(kept.nodes), merkle.nodes_of(rebuilt.hashes)
    is_whole = _root_of(nodes) == root.tree and len(rebuilt.ids) == root.entry_count
    if is_whole and nodes == hashes and kept.entry_ids == rebuilt.ids.tolist():
        return
    signed = hashes[: root.entry_count * merkle.HASH_BYTES]
    # If roots were rewritten together with their entries, the signature fails, and no entry can be named.
    if is_whole or merkle.nodes_of(signed) != hashes or _root_of(hashes) != root.tree:
        yield Finding(KEPT, root.number)
        return
    yield from _differing_entries(
        root.number, _by_id(rebuilt.ids, rebuilt.hashes), _by_id(kept.entry_ids, signed)
    )


def _examined(
    leaves: Iterable[Leaf], counts: dict[str, int], root: LedgerRoot, wrong: list[Finding]
) -> Iterator[Leaf]:
    """Yield the leaves unchanged, count them, and collect the faults of erased entries."""
    for leaf in leaves:
        counts["entries"] += 1
        counts["erased"] += leaf.is_erased
        if leaf.is_erased and leaf.row.reason not in ("", ERASED):
            wrong.append(Finding(WORDLESS, root.number, leaf.row.id))
        if leaf.is_forged_erasure:
            wrong.append(Finding(ERASED_WITH_OWNER, root.number, leaf.row.id))
        yield leaf


def _root_of(nodes: bytes) -> str:
    return nodes[-merkle.HASH_BYTES :].hex()


def _by_id(ids: Iterable[int], hashes: bytes) -> dict[int, bytes]:
    starts = range(0, len(hashes), merkle.HASH_BYTES)
    return {entry_id: hashes[at : at + merkle.HASH_BYTES] for entry_id, at in zip(ids, starts, strict=False)}


def _differing_entries(
    root: int, leaves: Mapping[int, bytes], signed: Mapping[int, bytes]
) -> Iterator[Finding]:
    for entry_id, leaf in leaves.items():
        if entry_id not in signed:
            yield Finding(NOT_ADDED, root, entry_id)
        elif signed[entry_id] != leaf:
            yield Finding(UNCHANGED, root, entry_id)
    for entry_id in signed:
        if entry_id not in leaves:
            yield Finding(PRESENT, root, entry_id)
