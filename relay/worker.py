"""
The loops of the relay worker, as threads of a Celery worker.

One broadcasts, and one tracks and settles. With a treasury or a remote signer, one funds relayers; with a remote
signer, one completes unsigned calls.

The loops find their work in PostgreSQL. Celery only starts and stops them with the worker; they need no
message, so they continue while Redis is unavailable. The step starts before the worker connects to the broker.
A worker that runs the loops must use a pool that does not fork (`solo` or `threads`), because a process forked
beside running threads may inherit a lock that is never released.

A watchdog checks that the loops make progress. If one stalls, the watchdog exits the process, and the supervisor
restarts it.
"""

import logging
import os
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar

from celery import bootsteps, signals
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import InterfaceError, OperationalError, connection

from gateway.chain.client import node_checks
from gateway.chain.config import chains, get_chain, on_chain
from gateway.common import clock, metrics, tasks
from gateway.common.errors import DomainError
from gateway.common.leases import LeaseLost
from gateway.web import tracing
from relay.queries.chains import removed_chains_with_open_calls
from relay.services.accepting import unsigned
from relay.services.sending import broadcasting, funding
from relay.services.sending.loops import BROADCASTING, SIGNED_CHANNEL, TRACKING, LoopLease, Stall, stalls
from relay.services.sending.notifications import Listener
from relay.services.settling import tracking

logger = logging.getLogger(__name__)

QUEUE = "relay"
_POOLS = ("solo", "thread")

STANDBY_SECONDS = 1.0
FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.5, 5.0
# Broadcasting runs at least this often, with or without a notification.
CLOCK_SECONDS = 1.0
# After a notification, calls that follow within this time join the batch; a block takes many times longer.
_GATHERING_SECONDS = 0.1
# The chain is read several times per block, because account nonces count as in flight until their block is read.
_READS_PER_BLOCK = 4
# A loop counts as stuck if it has not completed a run within this time.
_STUCK_SECONDS = 180.0
# Interval of the watchdog's checks.
_WATCH_SECONDS = 5.0
_ENDING_SECONDS = 30.0


class Loop(threading.Thread, ABC):
    """
    A thread that repeats its work on the chain that it was created for, while this worker holds the loop's lease.

    No error ends it.

    It retries any failed run with exponential backoff. If the node or the database is unavailable, it logs the start
    and the end of the outage at WARNING; any other error is logged with its traceback.
    """

    title: ClassVar[str]

    def __init__(self, *, owner: str) -> None:
        self.chain_id = get_chain().id
        super().__init__(name=f"relay-{self.title}-{self.chain_id}", daemon=True)
        self.last_run_at = time.monotonic()
        self.stopping = threading.Event()
        self._lease = LoopLease(loop=self.title, owner=owner)
        self._failures = 0
        self._is_out = False

    @property
    def has_lease(self) -> bool:
        """Whether this worker holds the loop's lease."""
        return self._lease.is_held

    @abstractmethod
    def work(self) -> int:
        """Do the work that is due; return how many calls it moved."""

    @abstractmethod
    def wait(self) -> None:
        """Return when there may be work, or soon after `stopping` is set."""

    def run(self) -> None:
        """Run until `stopping` is set, then let another worker take over."""
        with on_chain(self.chain_id):
            self._run()

    def _run(self) -> None:
        while not self.stopping.is_set():
            self._run_once()
            self.last_run_at = time.monotonic()
        try:
            self._lease.release()
        except (OperationalError, InterfaceError):
            logger.warning("the lease of %s is left to expire: the database is unavailable", self.title)
        finally:
            connection.close()

    def _run_once(self) -> None:
        try:
            if self._lease.hold():
                with self._lease.fenced():
                    moved = self.work()
                self._lease.note(succeeded=True, moved=moved)
                self._end_outage()
                self.wait()
            else:
                self._end_outage()
                self.stopping.wait(STANDBY_SECONDS)
        except LeaseLost:
            logger.warning("%s was taken over by another worker while this one stalled", self.title)
            self._lease.lose()
        except Exception as error:  # noqa: BLE001 - logged; the work is in rows, and the next run does it
            self._lease.note(succeeded=False)
            self._log(error)
            # The session may be in any state, so the next run opens a new one.
            connection.close()
            self.stopping.wait(min(_LONGEST_PAUSE_SECONDS, FIRST_PAUSE_SECONDS * 2**self._failures))
            self._failures += 1

    def _log(self, error: Exception) -> None:
        if not _is_outage(error):
            logger.error("%s failed and will be retried", self.title, exc_info=error)
        elif not self._is_out:
            self._is_out = True
            detail = error.detail if isinstance(error, DomainError) else type(error).__name__
            logger.warning("%s waits: %s", self.title, detail)

    def _end_outage(self) -> None:
        self._failures = 0
        if self._is_out:
            self._is_out = False
            logger.warning("%s continues", self.title)


def _is_outage(error: Exception) -> bool:
    return isinstance(error, OperationalError | InterfaceError) or (
        isinstance(error, DomainError) and error.is_outage
    )


class Broadcasting(Loop):
    """Broadcasts signed attempts when PostgreSQL notifies, and at least once a second."""

    title = BROADCASTING

    def __init__(self, *, owner: str) -> None:
        super().__init__(owner=owner)
        self._signed = Listener(SIGNED_CHANNEL)
        self._sweep_at = 0.0

    def work(self) -> int:
        """Broadcast unsent attempts; every few seconds also resend attempts that are overdue."""
        if time.monotonic() < self._sweep_at:
            return broadcasting.broadcast(now=clock.now())
        self._sweep_at = time.monotonic() + get_chain().pace.track_seconds
        return broadcasting.sweep(now=clock.now())

    def wait(self) -> None:
        """Wait for a notification, then briefly for calls that arrive with it."""
        if self._signed.wait(seconds=CLOCK_SECONDS):
            self.stopping.wait(_GATHERING_SECONDS)


class Tracking(Loop):
    """Reads each new block once, and settles the calls that it has confirmed."""

    title = TRACKING

    def __init__(self, *, owner: str) -> None:
        super().__init__(owner=owner)
        self._tracker = tracking.Tracker()
        self._next_at = 0.0

    def work(self) -> int:
        """Track the newest block if it is a new one."""
        seconds = min(get_chain().pace.track_seconds, get_chain().block_seconds / _READS_PER_BLOCK)
        self._next_at = time.monotonic() + seconds
        return self._tracker.track_new_block(now=clock.now())

    def wait(self) -> None:
        """Wait until the next read is due; the time that settling took counts towards the interval."""
        self.stopping.wait(self._next_at - time.monotonic())


class Funding(Loop):
    """Tops up relayers from the treasury; a process without the treasury's key only reads its balance."""

    title = "funding"

    def work(self) -> int:
        """Follow the transfer in flight, or begin one."""
        funding.top_up(now=clock.now())
        return 0

    def wait(self) -> None:
        """Wait for about one block."""
        self.stopping.wait(get_chain().block_seconds)


class Signing(Loop):
    """Completes accepted calls that lack their signature, where a remote signer signs."""

    title = "signing"

    def work(self) -> int:
        """Sign waiting calls; withdraw those that have waited too long."""
        return unsigned.sweep(now=clock.now())

    def wait(self) -> None:
        """Wait until the next sweep is due."""
        self.stopping.wait(get_chain().pace.track_seconds)


class Watchdog(threading.Thread):
    """
    Renews the file of the health check while this worker's loops make progress.

    It exits the process if a loop is stuck, or if a loop whose lease this worker holds has stalled with work due.
    Work that was due before this process started does not count, because a restart has not helped it.
    """

    def __init__(self, loops: Sequence[Loop], *, end: Callable[[int], object] = os._exit) -> None:
        super().__init__(name="relay-watchdog", daemon=True)
        self.stopping = threading.Event()
        self._loops, self._end = loops, end
        self._began_at = time.monotonic()
        self._complaint = ""

    def run(self) -> None:
        """Check repeatedly until `stopping` is set."""
        while not self.stopping.is_set():
            self.check()
            self.stopping.wait(_WATCH_SECONDS)
        connection.close()

    def check(self) -> None:
        """Check once."""
        stuck = [loop.title for loop in self._loops if time.monotonic() - loop.last_run_at > _STUCK_SECONDS]
        stalled = self._stalls()
        if not stuck and not stalled:
            self._complaint = ""
            tasks.touch_alive_file()
            return
        complaint = " and ".join([*stuck, *(stall.loop for stall in stalled)])
        if complaint != self._complaint:
            self._complaint = complaint
            logger.error("%s has stalled with work due", complaint)
        age = time.monotonic() - self._began_at
        if stuck or any(stall.seconds < age for stall in stalled):
            logger.critical("this worker exits; the supervisor restarts it")
            self._end(1)

    def _stalls(self) -> list[Stall]:
        """Return this worker's stalled loops; none while the database is unavailable."""
        held = {(loop.chain_id, loop.title) for loop in self._loops if loop.has_lease}
        try:
            return [stall for stall in self._all_stalls() if (stall.chain_id, stall.loop) in held]
        except (OperationalError, InterfaceError):
            connection.close()
            return []

    def _all_stalls(self) -> Iterator[Stall]:
        for chain_id in {loop.chain_id for loop in self._loops}:
            with on_chain(chain_id):
                yield from stalls()


def loops_of_chain(*, owner: str) -> list[Loop]:
    """Return the loops of the current chain."""
    loops: list[Loop] = [Broadcasting(owner=owner), Tracking(owner=owner)]
    if settings.RELAY_SIGNER == "remote":
        loops.append(Signing(owner=owner))
    if settings.RELAY_SIGNER == "remote" or funding.treasury_address():
        loops.append(Funding(owner=owner))
    return loops


def _require_chains_of_open_calls() -> None:
    """
    Refuse to start without a chain that has calls in progress. While the database is unavailable, nothing is checked.

    Raises:
        ImproperlyConfigured: no process would send, settle or charge these calls, and their credits would stay held.
    """
    try:
        removed = removed_chains_with_open_calls()
    except (OperationalError, InterfaceError):
        connection.close()
        return
    if removed:
        raise ImproperlyConfigured(" ".join(f"{chain.fault} {chain.remedy}" for chain in removed))


class RelayLoops(bootsteps.StartStopStep):
    """The step of a Celery worker that runs the loops, where the worker takes the queue `relay`."""

    requires = ("celery.worker.components:Pool",)

    def __init__(self, worker: Any, **options: Any) -> None:
        super().__init__(worker, **options)
        self._loops: list[Loop] = []

    def include_if(self, worker: Any) -> bool:
        """Return whether this worker takes the queue `relay`."""
        return QUEUE in worker.app.amqp.queues.consume_from

    def create(self, worker: Any) -> None:
        """Refuse a pool that forks, and settings without a chain that has calls in progress."""
        pool = worker.pool_cls.__module__.rpartition(".")[2]
        if pool not in _POOLS:
            raise ImproperlyConfigured(
                f"The worker of the queue {QUEUE} runs threads: start it with --pool solo or --pool threads."
            )
        _require_chains_of_open_calls()

    def start(self, worker: Any) -> None:
        """Start the loops; the worker connects to the broker after this step."""
        self._loops = []
        for chain in chains():
            with on_chain(chain.id):
                self._loops += loops_of_chain(owner=worker.hostname)
        clock.start()
        self._node_checks = node_checks()
        for node_check in self._node_checks:
            node_check.start()
        metrics.reporter().start()
        tracing.start()
        signals.worker_shutting_down.connect(self._end_soon)
        self._watchdog = Watchdog(self._loops)
        for thread in (*self._loops, self._watchdog):
            thread.start()

    def stop(self, worker: Any) -> None:
        """Stop the loops after their current runs, within a time limit."""
        self._end_soon()
        for node_check in self._node_checks:
            node_check.stop()
        deadline = time.monotonic() + _ENDING_SECONDS
        for thread in (*self._loops, self._watchdog):
            thread.join(max(0.0, deadline - time.monotonic()))
        metrics.reporter().stop()
        clock.stop()

    def terminate(self, worker: Any) -> None:
        """Stop as `stop` does. A run that is cut off is safe: the next worker repeats it."""
        self.stop(worker)

    def _end_soon(self, **_: Any) -> None:
        """Tell the loops to stop as soon as shutdown begins: closing the worker's broker connection may take long."""
        for loop in self._loops:
            loop.stopping.set()
        self._watchdog.stopping.set()
