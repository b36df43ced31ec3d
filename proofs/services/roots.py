"""
Close roots: sign the entries of the ledger, so that the audit detects a later change.

A periodic task reads the entries that no root covers yet and closes a root over them; posting an entry costs nothing
extra. PostgreSQL assigns ids before the commit, so a transaction may commit an entry with a smaller id than one that is
already visible. The task therefore takes the last assigned id, and closes the root only after every transaction that
was writing entries at that moment has ended. An entry up to that id that appears later was forged.
"""

import logging
import secrets
import time
from datetime import timedelta

from django.db import connection, transaction

from credits.models import CreditEntry
from gateway.common import clock, db
from gateway.common.leases import try_lease
from gateway.common.statements import Statements
from proofs import leaf_texts, merkle
from proofs.keys import sign
from proofs.models import LedgerRoot
from proofs.services.leaves import between, hashed

logger = logging.getLogger(__name__)
# A root's tree is held in memory and sent to PostgreSQL as a whole. Further entries get another root in the same run.
MAX_ENTRIES = 2_000
# Without new entries, an empty root is closed at this interval; it proves that nothing was posted.
IDLE_INTERVAL = timedelta(minutes=45)
WAIT_SECONDS = 60
_POLL_SECONDS = 0.05
# The smallest possible id: an entry forged below the sequence's first id falls under the first root.
BEFORE_ALL = -(2**63)

_LAST_ID = "SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM credits_entry_id_seq"


class _Sql(Statements, file=__file__):
    writers: str
    salt_accounts: str
    keep_tree: str


class WritersBusy(Exception):
    """Transactions that write entries did not end in time; the next run covers their entries."""


def close_roots(*, wait_seconds: float = WAIT_SECONDS) -> list[LedgerRoot]:
    """
    Close roots over every committed entry and return the roots; an empty list while another run is under way.

    Raises:
        WritersBusy: a transaction that writes entries runs for longer than `wait_seconds`.
        ImproperlyConfigured: `LEDGER_SIGNING_KEY` is missing, or is not an EC P-256 private key.
    """
    with try_lease("credits.roots") as acquired:
        if not acquired:
            return []
        cut = _cut(wait_seconds)
        closed = []
        while (root := _close_next(cut)) is not None:
            closed.append(root)
            logger.info("ledger root closed: %s", root)
        return closed


def text_of(root: LedgerRoot) -> str:
    """Return the text that the root's signature covers."""
    return leaf_texts.root_text(
        number=root.number,
        closed_at=root.closed_at,
        entry_count=root.entry_count,
        last_entry_id=root.last_entry_id,
        tree=root.tree,
        previous=root.previous,
    )


def published(root: LedgerRoot) -> dict[str, str]:
    """Return a root as the API and exports publish it."""
    return {"text": text_of(root), "signature": root.signature, "keyId": root.key_id}


def _cut(wait_seconds: float) -> int:
    """Return the last assigned entry id, once every transaction that may have been assigned one up to it has ended."""
    with connection.cursor() as cursor:
        cursor.execute(_LAST_ID)
        (last_id,) = cursor.fetchone()
        cursor.execute(_Sql.writers)
        writers, deadline = set(cursor.fetchall()), time.monotonic() + wait_seconds
        while writers:
            if time.monotonic() > deadline:
                raise WritersBusy(f"{len(writers)} transactions write entries for {wait_seconds} s")
            time.sleep(_POLL_SECONDS)
            cursor.execute(_Sql.writers)
            writers &= set(cursor.fetchall())
    return int(last_id)


def _end_of_batch(after: int, cut: int) -> int:
    """Return the cut, or an earlier id if one root may not cover all entries up to the cut."""
    later = CreditEntry.objects.filter(pk__gt=after, pk__lte=cut).order_by("pk").values_list("pk", flat=True)
    return later[MAX_ENTRIES - 1 : MAX_ENTRIES].first() or cut


def _close_next(cut: int) -> LedgerRoot | None:
    """Close one root over the next entries up to the cut; None if no root is due."""
    last = LedgerRoot.objects.order_by("-number").first()
    after = last.last_entry_id if last else BEFORE_ALL
    upto = _end_of_batch(after, cut)
    db.all_rows(_Sql.salt_accounts, {"after": after, "upto": upto})
    seed = secrets.token_bytes(leaf_texts.SECRET_BYTES)
    leaves = hashed(between(after=after, upto=upto), seed)
    if not leaves.ids and last and last.closed_at > clock.now() - IDLE_INTERVAL:
        return None
    nodes = merkle.nodes_of(leaves.hashes)
    root = LedgerRoot(
        number=last.number + 1 if last else 1,
        closed_at=clock.now(),
        entry_count=len(leaves.ids),
        last_entry_id=max(after, upto),
        tree=nodes[-merkle.HASH_BYTES :].hex(),
        previous=leaf_texts.root_hash(text_of(last)) if last else "",
    )
    root.key_id, root.signature = sign(text_of(root))
    # Hashing takes seconds, so the transaction begins only now; entries are append-only and cannot have changed.
    with transaction.atomic():
        root.save(force_insert=True)
        db.all_rows(
            _Sql.keep_tree, {"root": root.number, "seed": seed, "ids": leaves.ids.tolist(), "nodes": nodes}
        )
    return root
