"""Verify an exported ledger line by line, from the file alone: no database is asked."""

import json
from collections.abc import Iterable, Iterator, Mapping

from credits.keys import PublicKeys, is_signed
from credits.leaf_texts import root_hash
from credits.merkle import Stream, leaf_hash


class ExportVerification:
    """
    One reading of an export. `faults` says in words what does not hold; an export without faults is what was signed.

    `published` are texts of roots by their numbers that were kept elsewhere, for instance by an earlier export.
    """

    def __init__(self, keys: PublicKeys, published: Mapping[int, str] | None = None) -> None:
        self._keys, self._published = keys, dict(published or {})
        self._tree, self._last_root, self._root_text = Stream(), 0, ""
        self._last_entry: int | None = None
        self.roots = self.entries = self.open_entries = 0

    def faults(self, lines: Iterable[str]) -> Iterator[str]:
        """Read all lines, and yield each fault."""
        has_ended = False
        for number, line in enumerate(lines, start=1):
            if has_ended:
                yield f"line {number}: something follows the end"
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
                    yield f"line {number}: the kind {kind} is unknown"
            except (ValueError, KeyError, TypeError):
                yield f"line {number}: it cannot be read"
                return
        if not has_ended:
            yield "the export is cut off: it has no end"

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
        if self._published.pop(root["root"], text) != text:
            yield f"line {number}: {name} is not the one that was published"
        self._tree, self._last_root, self._root_text = Stream(), int(root["root"]), text
        self._last_entry = root["lastEntry"]
        self.roots += 1

    def _end(self, number: int, members: Mapping[str, int]) -> Iterator[str]:
        self.open_entries = int(members["openEntries"])
        if self._tree.size or (members["roots"], members["entries"]) != (self.roots, self.entries):
            yield f"line {number}: lines are missing before the end"
        for missing in sorted(self._published):
            yield f"root {missing} was published and is not in the export"


def read_roots(lines: Iterable[str]) -> dict[int, str]:
    """Return the texts of the roots in an export of any kind, by their numbers."""
    members = (json.loads(line) for line in lines)
    texts = (line["text"] for line in members if line["kind"] == "root")
    return {int(json.loads(text)["root"]): text for text in texts}
