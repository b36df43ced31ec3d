"""
State that the relay worker's loops share through PostgreSQL: each loop's lease, and the notification of new work.

The worker that holds a loop's lease (`gateway.common.leases`) runs it. A worker that stalled for longer than its
lease can no longer write. As a second safeguard, all work is safe to repeat.
"""

import time
from datetime import datetime
from typing import NamedTuple

from django.conf import settings

from gateway.chain.client import get_chain_client
from gateway.chain.config import get_chain
from gateway.common import db
from gateway.common.leases import Lease
from gateway.common.statements import Statements
from gateway.web.process import Faults
from relay.models import SQL, WorkerLoop

# PostgreSQL notifies this channel when new bytes are committed; the loop's timer would find them later.
SIGNED_CHANNEL = "relay_signed"
BROADCASTING, TRACKING = "broadcasting", "tracking"

_LEASE_SECONDS = 10
RENEWED_AFTER_SECONDS = 3
# Longer than another worker needs to take over: it does when the lease expires.
_STOPPED_SECONDS = 60


class _Sql(Statements, file=__file__, shared=SQL):
    failing: str
    note: str
    stalls: str


def notify_signed() -> None:
    """Wake the worker that broadcasts, once the transaction commits."""
    db.first_row("SELECT pg_notify(%(channel)s, '')", {"channel": SIGNED_CHANNEL})


class LoopLease(Lease):
    """One worker's lease on one loop of this process's chain. `owner` names the worker and survives its restart."""

    def __init__(self, *, loop: str, owner: str) -> None:
        super().__init__(f"relay.{get_chain().id}.{loop}", owner=owner, seconds=_LEASE_SECONDS)
        self._loop = loop
        self._renew_at = 0.0
        self._has_ended = self._has_succeeded = self._has_moved = False

    @property
    def is_held(self) -> bool:
        """Whether this worker held the lease when it last took or renewed it."""
        return self._renew_at > 0

    def hold(self) -> bool:
        """
        Return whether this worker holds the lease, after taking or renewing it if that is due.

        A renewal also stores whether runs have ended, succeeded or moved calls since the previous renewal.
        """
        if time.monotonic() < self._renew_at:
            return True
        if not (self.is_held and self.renew()) and not self.take():
            self._renew_at = 0.0
            return False
        self._renew_at = time.monotonic() + RENEWED_AFTER_SECONDS
        runs = {"ended": self._has_ended, "succeeded": self._has_succeeded, "moved": self._has_moved}
        db.all_rows(_Sql.note, {"chain": get_chain().id, "loop": self._loop, **runs})
        self._has_ended = self._has_succeeded = self._has_moved = False
        return True

    def note(self, *, succeeded: bool, moved: int = 0) -> None:
        """Record the outcome of a run and the number of calls that it moved; the next renewal stores both."""
        self._has_ended = True
        self._has_succeeded |= succeeded
        self._has_moved |= moved > 0

    def lose(self) -> None:
        """Forget that the lease is held; the next `hold` takes it again."""
        self._renew_at = 0.0

    def release(self) -> None:
        """Let another worker take over at once."""
        self.lose()
        super().release()


class LastRun(NamedTuple):
    """When a loop last finished a run, and when a run last succeeded; None if none has."""

    loop: str
    ended_at: datetime | None
    succeeded_at: datetime | None


def last_runs() -> list[LastRun]:
    """Return the last run of each loop that has ever run on this chain; the rows are some seconds behind."""
    rows = WorkerLoop.objects.filter(chain_id=get_chain().id).order_by("name")
    return [LastRun(row.name, row.ended_at, row.succeeded_at) for row in rows]


class Stall(NamedTuple):
    """A loop of a chain that has stalled with work due, and the seconds since that work became due."""

    chain_id: int
    loop: str
    seconds: float


def stalls() -> list[Stall]:
    """
    Return the loops that have moved nothing for `RELAY_STALL_SECONDS` although work was due all that time.

    An attempt is due for broadcast until a node has responded to it; a mined attempt is due for settlement once it is
    confirmed. Nothing is due while too few nodes are healthy or PostgreSQL accepts no writes.
    """
    chain = get_chain()
    fit = sum(not node.fault for node in get_chain_client().nodes())
    params = {
        "chain": chain.id,
        "confirming": (chain.confirmations + 1) * chain.block_seconds,
        "patience": settings.RELAY_STALL_SECONDS,
    }
    needed = {BROADCASTING: 1, TRACKING: chain.quorum}
    rows = db.all_rows(_Sql.stalls, params)
    return [Stall(chain.id, loop, seconds) for loop, seconds in rows if fit >= needed[loop]]


def faults() -> Faults:
    """For `/readyz`: return why calls are not sent or settled, if one of these loops has not succeeded lately."""
    chain = get_chain()
    params = {"chain": chain.id, "loops": [BROADCASTING, TRACKING], "seconds": _STOPPED_SECONDS}
    failing = db.all_rows(_Sql.failing, params)
    if not failing:
        return {}
    if not all(runs for _, runs in failing):
        return {"relay-worker": "has stopped"}
    fit = sum(not node.fault for node in get_chain_client().nodes())
    if fit < chain.quorum:
        return {"quorum": f"{fit} nodes respond correctly, and {chain.quorum} must agree"}
    return {"relay-worker": f"fails: {', '.join(loop for loop, _ in failing)}"}
