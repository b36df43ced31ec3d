"""
Write the ledger and its roots as JSON Lines, for somebody else to verify.

Each line is an object with a `kind`. The `entry` lines of a root come before its `root` line, both with the exact
`text` that was hashed or signed. The last line, `end`, says how many there were, so that a file that was cut off is no
export. An address or a reason is in it as a salted hash only.
"""

import json
from collections.abc import Iterator
from typing import Any

from credits.models import CreditEntry, LedgerRoot, RootTree
from credits.services.leaves import between
from credits.services.roots import BEFORE_ALL, text_of


def ledger_lines() -> Iterator[str]:
    """Yield the lines of an export: entries as the database has them now, and the roots."""
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


def published(root: LedgerRoot) -> dict[str, str]:
    """Return a root as everybody may read it."""
    return {"text": text_of(root), "signature": root.signature, "keyId": root.key_id}


def _line(**members: Any) -> str:
    return json.dumps(members, separators=(",", ":"))
