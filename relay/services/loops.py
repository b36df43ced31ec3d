"""
What the loops of the relay worker share through PostgreSQL: who runs each loop, and that there is work.

A lease is a row. It goes by the database's clock, so it holds across hosts, and it needs no session,
so it holds behind a pooler. It only keeps workers from doing the same work at once: a worker whose
work takes longer than its lease may be overtaken, and all of that work is safe to do twice.
"""

import time
from datetime import datetime
from typing import NamedTuple

from django.conf import settings

from gateway.chain.client import get_chain_client
from gateway.chain.config import get_chain
from gateway.common import db
from relay.models import Attempt, RelayTransaction, WorkerLoop, sql_values

# PostgreSQL notifies this channel when new bytes are committed. It is only sooner than the clock of the loop.
SIGNED_CHANNEL = "relay_signed"
BROADCASTING, TRACKING = "broadcasting", "tracking"

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
        self._has_ended = self._has_succeeded = self._has_moved = False

    @property
    def is_held(self) -> bool:
        """Whether this worker held the lease when it last looked."""
        return self._renew_at > 0

    def hold(self) -> bool:
        """
        Return whether this worker holds the lease, after taking or renewing it where that is due.

        With it goes down that work has ended, succeeded or moved a call since the last time.
        """
        if time.monotonic() < self._renew_at:
            return True
        runs = {"ended": self._has_ended, "succeeded": self._has_succeeded, "moved": self._has_moved}
        if not db.all_rows(_TAKE, {**self._params, **runs}):
            self._renew_at = 0.0
            return False
        self._renew_at = time.monotonic() + _RENEWED_AFTER_SECONDS
        self._has_ended = self._has_succeeded = self._has_moved = False
        return True

    def note(self, *, succeeded: bool, moved: int = 0) -> None:
        """Note that the work has ended, how, and how many calls it moved; the next renewal stores it."""
        self._has_ended = True
        self._has_succeeded |= succeeded
        self._has_moved |= moved > 0

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


class Stall(NamedTuple):
    """A loop that moves nothing although something is due, and for how many seconds it has been due."""

    loop: str
    seconds: float


def stalls() -> list[Stall]:
    """
    Return the loops that have moved nothing for `RELAY_STALL_SECONDS` although something was due all that time.

    An attempt is due to be sent while no node has said anything about it, a mined one to be settled once it is
    confirmed. What waits for the nodes, because too few are fit, is not due.
    """
    chain = get_chain()
    fit = sum(not node.fault for node in get_chain_client().nodes())
    params = {
        "chain": chain.id,
        "confirming": (chain.confirmations + 1) * chain.block_seconds,
        "patience": settings.RELAY_STALL_SECONDS,
    }
    needed = {BROADCASTING: 1, TRACKING: chain.quorum}
    return [Stall(loop, seconds) for loop, seconds in db.all_rows(_STALLS, params) if fit >= needed[loop]]


# Take the lease where it is free, expired or ours already. No row: another worker holds it.
_TAKE = """
INSERT INTO relay_workerloop AS held (chain_id, name, owner, expires_at)
VALUES (%(chain)s, %(loop)s, %(owner)s, statement_timestamp() + %(seconds)s * interval '1 second')
ON CONFLICT (chain_id, name) DO UPDATE
SET owner = excluded.owner, expires_at = excluded.expires_at,
    ended_at = CASE WHEN %(ended)s THEN statement_timestamp() ELSE held.ended_at END,
    succeeded_at = CASE WHEN %(succeeded)s THEN statement_timestamp() ELSE held.succeeded_at END,
    moved_at = CASE WHEN %(moved)s THEN statement_timestamp() ELSE held.moved_at END
WHERE held.owner = excluded.owner OR held.expires_at <= statement_timestamp()
RETURNING id
"""

_RELEASE = """
UPDATE relay_workerloop SET expires_at = statement_timestamp()
WHERE chain_id = %(chain)s AND name = %(loop)s AND owner = %(owner)s
RETURNING id
"""

_IN_PROGRESS = sql_values(*RelayTransaction.IN_PROGRESS)

_STALLS = f"""
WITH due (loop, since) AS (
    SELECT '{BROADCASTING}', min(attempt.created_at)
    FROM relay_attempt AS attempt JOIN relay_relaytransaction AS call ON call.id = attempt.relay_transaction_id
    WHERE attempt.chain_id = %(chain)s AND attempt.status = '{Attempt.Status.SIGNED}'
      AND attempt.node_message = '' AND call.status IN {_IN_PROGRESS}
    UNION ALL
    SELECT '{TRACKING}', min(attempt.mined_at) + %(confirming)s * interval '1 second'
    FROM relay_relaytransaction AS call JOIN relay_attempt AS attempt ON attempt.relay_transaction_id = call.id
    WHERE attempt.chain_id = %(chain)s AND attempt.status = '{Attempt.Status.MINED}' AND call.status IN {_IN_PROGRESS}
)
SELECT due.loop, extract(epoch FROM statement_timestamp() - due.since)::float
FROM due LEFT JOIN relay_workerloop AS held ON held.name = due.loop AND held.chain_id = %(chain)s
WHERE due.since IS NOT NULL
  AND greatest(due.since, held.moved_at) < statement_timestamp() - %(patience)s * interval '1 second'
"""  # noqa: S608 - constants of our own
