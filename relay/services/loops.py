"""
What the loops of the relay worker share through PostgreSQL: who runs each loop, and that there is work.

A lease is a row. It goes by the database's clock, so it holds across hosts, and it needs no session,
so it holds behind a pooler. It only keeps workers from doing the same work at once: a worker whose
work takes longer than its lease may be overtaken, and all of that work is safe to do twice.
"""

import time
from datetime import datetime
from typing import NamedTuple

from gateway.chain.config import get_chain
from gateway.common import db
from relay.models import WorkerLoop

# PostgreSQL notifies this channel when new bytes are committed. It is only sooner than the clock of the loop.
SIGNED_CHANNEL = "relay_signed"

_LEASE_SECONDS = 10
_RENEWED_AFTER_SECONDS = 3


def notify_signed() -> None:
    """Wake the worker that broadcasts, once the transaction commits."""
    db.first_row("SELECT pg_notify(%(channel)s, '')", {"channel": SIGNED_CHANNEL})


class Lease:
    """One worker's hold on one loop of this process's chain. `owner` names the worker, also after its restart."""

    def __init__(self, *, loop: str, owner: str) -> None:
        self._params = {"chain": get_chain().id, "loop": loop, "owner": owner, "seconds": _LEASE_SECONDS}
        self._renew_at = 0.0
        self._has_ended = self._has_succeeded = False

    def hold(self) -> bool:
        """
        Return whether this worker holds the lease, after taking or renewing it where that is due.

        With it goes down that work has ended or succeeded since the last time.
        """
        if time.monotonic() < self._renew_at:
            return True
        runs = {"ended": self._has_ended, "succeeded": self._has_succeeded}
        if not db.all_rows(_TAKE, {**self._params, **runs}):
            return False
        self._renew_at = time.monotonic() + _RENEWED_AFTER_SECONDS
        self._has_ended = self._has_succeeded = False
        return True

    def note(self, *, succeeded: bool) -> None:
        """Note for monitoring that the work has ended, with or without success; the next renewal stores it."""
        self._has_ended = True
        self._has_succeeded |= succeeded

    def release(self) -> None:
        """Let another worker take over at once."""
        self._renew_at = 0.0
        db.all_rows(_RELEASE, self._params)


class LastRun(NamedTuple):
    """When the work of a loop last ended and last succeeded, if it ever did."""

    loop: str
    ended_at: datetime | None
    succeeded_at: datetime | None


def last_runs() -> list[LastRun]:
    """Return the last runs of each loop that a worker has ever run on this chain, some seconds late."""
    rows = WorkerLoop.objects.filter(chain_id=get_chain().id).order_by("name")
    return [LastRun(row.name, row.ended_at, row.succeeded_at) for row in rows]


# Take the lease where it is free, expired or ours already. No row: another worker holds it.
_TAKE = """
INSERT INTO relay_workerloop AS held (chain_id, name, owner, expires_at)
VALUES (%(chain)s, %(loop)s, %(owner)s, statement_timestamp() + %(seconds)s * interval '1 second')
ON CONFLICT (chain_id, name) DO UPDATE
SET owner = excluded.owner, expires_at = excluded.expires_at,
    ended_at = CASE WHEN %(ended)s THEN statement_timestamp() ELSE held.ended_at END,
    succeeded_at = CASE WHEN %(succeeded)s THEN statement_timestamp() ELSE held.succeeded_at END
WHERE held.owner = excluded.owner OR held.expires_at <= statement_timestamp()
RETURNING id
"""

_RELEASE = """
UPDATE relay_workerloop SET expires_at = statement_timestamp()
WHERE chain_id = %(chain)s AND name = %(loop)s AND owner = %(owner)s
RETURNING id
"""
