"""
Write the ledger and its roots as JSON Lines, and verify such a file without the database.

Each line is an object with a `kind`. The `entry` lines of a root come before its `root` line, both with the exact
`text` that was hashed or signed. The last line, `end`, counts the roots and entries, so that a truncated file is
recognised. Addresses and reasons appear as salted hashes only.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from credits.models import CreditEntry
from proofs.keys import PublicKeys, is_signed
from proofs.leaf_texts import root_hash
from proofs.merkle import Stream, leaf_hash
from proofs.models import LedgerRoot, RootTree
from proofs.services.leaves import between
from proofs.services.roots import BEFORE_ALL, published


def ledger_lines() -> Iterator[str]:
    """Yield the lines of an export: the roots, and the entries in their current state in the database."""
    after, roots, entries = BEFORE_ALL, 0, 0
    for root in LedgerRoot.objects.order_by("number").iterator():
        seed = next(iter(RootTree.objects.filter(root=root).values_list("seed", flat=True)), b"")
        for leaf in between(after=after, upto=root.last_entry_id):
            entries += 1
            yield _line(kind="entry", text=leaf.text(bytes(seed)))
        yield _line(kind="root", **published(root))
        after, roots = root.last_entry_id, roots + 1
    open_entries = CreditEntry.objects.filter(pk__gt=after).count()
    yield _line(kind="end", roots=roots, entries=entries, openEntries=open_entries)


def root_lines() -> Iterator[str]:
    """Yield the lines of the roots alone, for an operator to keep where the service cannot write."""
    for root in LedgerRoot.objects.order_by("number").iterator():
        yield _line(kind="root", **published(root))


def _line(**members: Any) -> str:
    return json.dumps(members, separators=(",", ":"))


class ExportVerification:
    """
    Verifies one export. If it has no `faults`, it is exactly what the service signed.

    `kept` has the texts of roots that were kept elsewhere, for instance from an earlier export, by their numbers.
    """

    def __init__(self, keys: PublicKeys, kept: Mapping[int, str] | None = None) -> None:
        self._keys, self._kept = keys, dict(kept or {})
        self._tree, self._last_root, self._root_text = Stream(), 0, ""
        self._last_entry: int | None = None
        self.roots = self.entries = self.open_entries = 0

    def faults(self, lines: Iterable[str]) -> Iterator[str]:
        """Read all lines, and yield a sentence for each fault."""
        has_ended = False
        for number, line in enumerate(lines, start=1):
            if has_ended:
                yield f"line {number}: content after the end"
                return
            try:
                members = json.loads(line)
                kind = members["kind"]
                if kind == "entry":
                    yield from self._entry(number, members["text"])
                elif kind == "root":
                    yield from self._root_line(number, members)
                elif kind == "end":
                    has_ended = True
                    yield from self._end(number, members)
                else:
                    yield f"line {number}: unknown kind {kind}"
            except (ValueError, KeyError, TypeError):
                yield f"line {number}: unreadable"
                return
        if not has_ended:
            yield "the export is truncated: the end is missing"

    def _entry(self, number: int, text: str) -> Iterator[str]:
        entry_id = int(json.loads(text)["entry"])
        if self._last_entry is not None and entry_id <= self._last_entry:
            yield f"line {number}: entry {entry_id} is out of order"
        self._tree.add(leaf_hash(text))
        self._last_entry = entry_id
        self.entries += 1

    def _root_line(self, number: int, members: Mapping[str, str]) -> Iterator[str]:
        text = members["text"]
        root = json.loads(text)
        name = f"root {root['root']}"
        if not is_signed(text, members["signature"], members["keyId"], self._keys):
            yield f"line {number}: {name} is not signed by a known key"
        if root["root"] != self._last_root + 1:
            yield f"line {number}: {name} follows root {self._last_root}"
        if root["previous"] != (root_hash(self._root_text) if self._root_text else ""):
            yield f"line {number}: {name} does not name the root before it"
        if (root["entries"], root["tree"]) != (self._tree.size, self._tree.root().hex()):
            yield f"line {number}: {name} was not signed over the {self._tree.size} entries before it"
        if self._last_entry is not None and root["lastEntry"] < self._last_entry:
            yield f"line {number}: {name} ends before entry {self._last_entry}"
        if self._kept.pop(root["root"], text) != text:
            yield f"line {number}: {name} is not the one that was published"
        self._tree, self._last_root, self._root_text = Stream(), int(root["root"]), text
        self._last_entry = root["lastEntry"]
        self.roots += 1

    def _end(self, number: int, members: Mapping[str, int]) -> Iterator[str]:
        self.open_entries = int(members["openEntries"])
        if self._tree.size or (members["roots"], members["entries"]) != (self.roots, self.entries):
            yield f"line {number}: lines are missing before the end"
        for missing in sorted(self._kept):
            yield f"root {missing} was published and is not in the export"


def read_roots(lines: Iterable[str]) -> dict[int, str]:
    """Return the texts of the roots among the lines, by their numbers."""
    members = (json.loads(line) for line in lines)
    texts = (line["text"] for line in members if line["kind"] == "root")
    return {int(json.loads(text)["root"]): text for text in texts}
