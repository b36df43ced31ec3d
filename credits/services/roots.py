"""
Close roots: sign what the ledger says, so that a later change is found out.

Posting knows nothing of this. From time to time a task reads the entries that are under no root yet and puts a root
over them. The cut is the hard part: ids are given before the commit, so a transaction may commit an entry
with a smaller id than one that is visible already. A root is closed only after every transaction has ended that had
begun to write entries when the cut was made. From then on an entry up to the cut that the root does not have was
forged.
"""

import logging
import secrets
import time
from datetime import timedelta

from django.db import connection, transaction
from django.utils import timezone

from credits import leaf_texts, merkle
from credits.keys import sign
from credits.models import CreditEntry, LedgerRoot
from credits.services.leaves import between, hashed
from gateway.common import db
from gateway.common.leases import try_lease

logger = logging.getLogger(__name__)
# A root of so many, and its tree, is kept and sent to PostgreSQL as a whole; what is more gets another root at once.
MAX_ENTRIES = 2_000
# Without a new entry, a root is closed so often all the same: it says that nothing was posted.
IDLE_INTERVAL = timedelta(minutes=45)
WAIT_SECONDS = 60
_POLL_SECONDS = 0.05
# The smallest id there can be: one that was forged below those of the sequence would stand under the first root.
BEFORE_ALL = -(2**63)

_LAST_ID = "SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM credits_entry_id_seq"
# Who writes entries has this lock, from before its ids are given until its transaction ends.
_WRITERS = """
SELECT virtualtransaction FROM pg_locks
WHERE locktype = 'relation' AND relation = 'credits_entry'::regclass AND mode = 'RowExclusiveLock' AND granted
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database()) AND pid <> pg_backend_pid()
"""
# One row for each account, of random bytes of PostgreSQL's own strong source.
_SALT_ACCOUNTS = """
INSERT INTO credits_accountsalt (account_id, salt)
SELECT DISTINCT account.id, uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())
FROM credits_entry AS entry JOIN credits_account AS account ON account.id = entry.account_id
WHERE entry.id > %(after)s AND entry.id <= %(upto)s
ON CONFLICT (account_id) DO NOTHING
RETURNING account_id
"""
# Django would write the hashes out as letters, several times over.
_KEEP_TREE = """
INSERT INTO credits_roottree (number, seed, entry_ids, nodes)
VALUES (%(root)s, %(seed)s, %(ids)s::bigint[], %(nodes)s)
RETURNING number
"""


class WritersBusy(Exception):
    """Transactions that write entries did not end in time; the next run closes what this one could not."""


def close_roots(*, wait_seconds: float = WAIT_SECONDS) -> list[LedgerRoot]:
    """
    Put roots over every entry that is committed by now, and return them; none while another run is under way.

    Raises:
        WritersBusy: a transaction that writes entries runs for longer than `wait_seconds`.
        ImproperlyConfigured: there is no key that signs.
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
    """Return what the root's signature is of."""
    return leaf_texts.root_text(
        number=root.number,
        closed_at=root.closed_at,
        entry_count=root.entry_count,
        last_entry_id=root.last_entry_id,
        tree=root.tree,
        previous=root.previous,
    )


def _cut(wait_seconds: float) -> int:
    """Return the last id that was given to an entry, once all who had one by then have committed or given up."""
    with connection.cursor() as cursor:
        cursor.execute(_LAST_ID)
        (last_id,) = cursor.fetchone()
        cursor.execute(_WRITERS)
        writers, deadline = set(cursor.fetchall()), time.monotonic() + wait_seconds
        while writers:
            if time.monotonic() > deadline:
                raise WritersBusy(f"{len(writers)} transactions write entries for {wait_seconds} s")
            time.sleep(_POLL_SECONDS)
            cursor.execute(_WRITERS)
            writers &= set(cursor.fetchall())
    return int(last_id)


def _end_of_batch(after: int, cut: int) -> int:
    """Return the cut, or the id with which as many entries are reached as one root may have."""
    later = CreditEntry.objects.filter(pk__gt=after, pk__lte=cut).order_by("pk").values_list("pk", flat=True)
    return later[MAX_ENTRIES - 1 : MAX_ENTRIES].first() or cut


def _close_next(cut: int) -> LedgerRoot | None:
    """Close one root over the next entries up to the cut; None where there is nothing to say."""
    last = LedgerRoot.objects.order_by("-number").first()
    after = last.last_entry_id if last else BEFORE_ALL
    upto = _end_of_batch(after, cut)
    db.all_rows(_SALT_ACCOUNTS, {"after": after, "upto": upto})
    seed = secrets.token_bytes(leaf_texts.SECRET_BYTES)
    leaves = hashed(between(after=after, upto=upto), seed)
    if not leaves.ids and last and last.closed_at > timezone.now() - IDLE_INTERVAL:
        return None
    nodes = merkle.nodes_of(leaves.hashes)
    root = LedgerRoot(
        number=last.number + 1 if last else 1,
        closed_at=timezone.now(),
        entry_count=len(leaves.ids),
        last_entry_id=max(after, upto),
        tree=nodes[-merkle.HASH_BYTES :].hex(),
        previous=leaf_texts.root_hash(text_of(last)) if last else "",
    )
    root.key_id, root.signature = sign(text_of(root))
    # Hashing takes seconds, so there is a transaction only now; what was hashed cannot change any more.
    with transaction.atomic():
        root.save(force_insert=True)
        db.all_rows(
            _KEEP_TREE, {"root": root.number, "seed": seed, "ids": leaves.ids.tolist(), "nodes": nodes}
        )
    return root
