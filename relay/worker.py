"""
The loops of the relay worker, as threads of a Celery worker: one broadcasts, one tracks and settles,
one funds relayers.

PostgreSQL holds their work and Celery only their lives: they start and end with the worker and need
no message, so they go on while Redis is away. The step starts before the worker connects to the
broker. A worker that runs the loops has a pool without processes of its own (`solo` or `threads`),
because a process that is forked beside running threads may inherit a lock that nobody releases.

A watchdog looks whether they do their work. If not, it ends the process, whose supervisor starts it anew.
"""

import logging
import os
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from celery import bootsteps, signals
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import InterfaceError, OperationalError, connection
from django.utils import timezone

from gateway.chain.client import node_checks
from gateway.chain.config import get_chain
from gateway.common import durations, tasks, tracing
from gateway.common.db import LeaseLost, Listener
from gateway.common.errors import DomainError
from relay.services.accepting import unsigned
from relay.services.sending import broadcasting, funding
from relay.services.sending.loops import BROADCASTING, SIGNED_CHANNEL, TRACKING, LoopLease, Stall, stalls
from relay.services.settling import tracking

logger = logging.getLogger(__name__)

QUEUE = "relay"
_POOLS = ("solo", "thread")

_STANDBY_SECONDS = 1.0
_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.5, 5.0
# How often broadcasting looks by itself: its clock where no notification comes.
_CLOCK_SECONDS = 1.0
# Calls of the next moment are sent in the same batch; a block takes many times longer.
_GATHERING_SECONDS = 0.1
# Until a block is found, the account nonces that it has used count as taken.
_LOOKS_IN_A_BLOCK = 4
# A loop that has not run for so long is stuck.
_STUCK_SECONDS = 180.0
# How often the watchdog looks.
_WATCH_SECONDS = 5.0
_ENDING_SECONDS = 30.0


class Loop(threading.Thread, ABC):
    """
    Work that is done again and again while this worker holds the loop's lease; no error ends it.

    While the node or the database is away, it tries at growing intervals; the beginning of an
    outage is one line at WARNING and its end another. Any other error is logged in full.
    """

    title: ClassVar[str]

    def __init__(self, *, owner: str) -> None:
        super().__init__(name=f"relay-{self.title}", daemon=True)
        self.last_run_at = time.monotonic()
        self.stopping = threading.Event()
        self._lease = LoopLease(loop=self.title, owner=owner)
        self._failures = 0
        self._is_out = False

    @property
    def has_lease(self) -> bool:
        """Whether this worker, and no other, does the loop's work."""
        return self._lease.is_held

    @abstractmethod
    def work(self) -> int:
        """Do what is to be done now; return how many calls it moved."""

    @abstractmethod
    def wait(self) -> None:
        """Return when there may be work, or soon after `stopping` is set."""

    def run(self) -> None:
        """Run until `stopping` is set, then let another worker take over."""
        while not self.stopping.is_set():
            self._run_once()
            self.last_run_at = time.monotonic()
        try:
            self._lease.release()
        except (OperationalError, InterfaceError):
            logger.warning("the lease of %s is left to expire: the database is away", self.title)
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
                self.stopping.wait(_STANDBY_SECONDS)
        except LeaseLost:
            logger.warning("%s was taken over by another worker while this one stood still", self.title)
            self._lease.lose()
        except Exception as error:  # noqa: BLE001 - logged; the work is in rows, and the next run does it
            self._lease.note(succeeded=False)
            self._log(error)
            # Whatever state the session is in, the next run begins with a new one.
            connection.close()
            self.stopping.wait(min(_LONGEST_PAUSE_SECONDS, _FIRST_PAUSE_SECONDS * 2**self._failures))
            self._failures += 1

    def _log(self, error: Exception) -> None:
        if not _is_outage(error):
            logger.error("%s failed; it is repeated", self.title, exc_info=error)
        elif not self._is_out:
            self._is_out = True
            detail = error.detail if isinstance(error, DomainError) else type(error).__name__
            logger.warning("%s waits: %s", self.title, detail)

    def _end_outage(self) -> None:
        self._failures = 0
        if self._is_out:
            self._is_out = False
            logger.warning("%s goes on", self.title)


def _is_outage(error: Exception) -> bool:
    return isinstance(error, OperationalError | InterfaceError) or (
        isinstance(error, DomainError) and error.is_outage
    )


class Broadcasting(Loop):
    """Sends what was signed: when PostgreSQL notifies, at the latest when the clock says so."""

    title = BROADCASTING

    def __init__(self, *, owner: str) -> None:
        super().__init__(owner=owner)
        self._signed = Listener(SIGNED_CHANNEL)
        self._sweep_at = 0.0

    def work(self) -> int:
        """Send what waits; every few seconds also what was lost on the way."""
        if time.monotonic() < self._sweep_at:
            return broadcasting.broadcast(now=timezone.now())
        self._sweep_at = time.monotonic() + settings.RELAY_TRACK_SECONDS
        return broadcasting.sweep(now=timezone.now())

    def wait(self) -> None:
        """Wait for a notification, then a moment longer for the calls that come with it."""
        if self._signed.wait(seconds=_CLOCK_SECONDS):
            self.stopping.wait(_GATHERING_SECONDS)


class Tracking(Loop):
    """Reads each new block once, and settles what it has confirmed."""

    title = TRACKING

    def __init__(self, *, owner: str) -> None:
        super().__init__(owner=owner)
        self._tracker = tracking.Tracker()
        self._next_at = 0.0

    def work(self) -> int:
        """Ask for the newest block; track if it is a new one."""
        seconds = min(settings.RELAY_TRACK_SECONDS, get_chain().block_seconds / _LOOKS_IN_A_BLOCK)
        self._next_at = time.monotonic() + seconds
        return self._tracker.track_new_block(now=timezone.now())

    def wait(self) -> None:
        """Wait for the clock, which goes on while a block is settled: a busy block does not delay the next one."""
        self.stopping.wait(self._next_at - time.monotonic())


class Funding(Loop):
    """Tops up relayers from the treasury; where there is only its address, reads its balance."""

    title = "funding"

    def work(self) -> int:
        """Follow the transfer on the way, or begin one."""
        funding.top_up(now=timezone.now())
        return 0

    def wait(self) -> None:
        """Wait for about a block."""
        self.stopping.wait(get_chain().block_seconds)


class Signing(Loop):
    """Finishes calls that were left without their signature, where a signer elsewhere makes it."""

    title = "signing"

    def work(self) -> int:
        """Have signed what waits; give up what has waited too long."""
        return unsigned.sweep(now=timezone.now())

    def wait(self) -> None:
        """Wait for the clock."""
        self.stopping.wait(settings.RELAY_TRACK_SECONDS)


class Watchdog(threading.Thread):
    """
    Renews the file of the health check while the loops of this worker do their work.

    It ends the process when a loop is stuck, and when one whose lease this worker holds moves nothing although
    something is due. What was due before this process began is no reason to end it: a new start did not help.
    """

    def __init__(self, loops: Sequence[Loop], *, end: Callable[[int], object] = os._exit) -> None:
        super().__init__(name="relay-watchdog", daemon=True)
        self.stopping = threading.Event()
        self._loops, self._end = loops, end
        self._began_at = time.monotonic()
        self._complaint = ""

    def run(self) -> None:
        """Look again and again until `stopping` is set."""
        while not self.stopping.is_set():
            self.look()
            self.stopping.wait(_WATCH_SECONDS)
        connection.close()

    def look(self) -> None:
        """Look once."""
        stuck = [loop.title for loop in self._loops if time.monotonic() - loop.last_run_at > _STUCK_SECONDS]
        stalled = self._stalls()
        if not stuck and not stalled:
            self._complaint = ""
            tasks.touch_alive_file()
            return
        complaint = " and ".join([*stuck, *(stall.loop for stall in stalled)])
        if complaint != self._complaint:
            self._complaint = complaint
            logger.error("%s does not move although something is due", complaint)
        age = time.monotonic() - self._began_at
        if stuck or any(stall.seconds < age for stall in stalled):
            logger.critical("this worker ends itself, to be started anew")
            self._end(1)

    def _stalls(self) -> list[Stall]:
        """Return the stalled loops that are this worker's; without the database nobody can say."""
        held = {loop.title for loop in self._loops if loop.has_lease}
        try:
            return [stall for stall in stalls() if stall.loop in held]
        except (OperationalError, InterfaceError):
            connection.close()
            return []


class RelayLoops(bootsteps.StartStopStep):
    """The step of a Celery worker that runs the loops, where the worker takes the queue `relay`."""

    requires = ("celery.worker.components:Pool",)

    def __init__(self, worker: Any, **options: Any) -> None:
        super().__init__(worker, **options)
        self._loops: list[Loop] = []

    def include_if(self, worker: Any) -> bool:
        """Say whether this is the worker of relay calls."""
        return QUEUE in worker.app.amqp.queues.consume_from

    def create(self, worker: Any) -> None:
        """Refuse a pool that forks."""
        pool = worker.pool_cls.__module__.rpartition(".")[2]
        if pool not in _POOLS:
            raise ImproperlyConfigured(
                f"The worker of the queue {QUEUE} runs threads: start it with --pool solo or --pool threads."
            )

    def start(self, worker: Any) -> None:
        """Start the loops; the worker connects to the broker after this step."""
        self._loops = [Broadcasting(owner=worker.hostname), Tracking(owner=worker.hostname)]
        if settings.RELAY_SIGNER == "remote":
            self._loops.append(Signing(owner=worker.hostname))
        if settings.RELAY_SIGNER == "remote" or funding.treasury_address():
            self._loops.append(Funding(owner=worker.hostname))
        self._node_checks = node_checks()
        self._node_checks.start()
        durations.reporter().start()
        tracing.start()
        signals.worker_shutting_down.connect(self._end_soon)
        self._watchdog = Watchdog(self._loops)
        for thread in (*self._loops, self._watchdog):
            thread.start()

    def stop(self, worker: Any) -> None:
        """Let each loop finish its run."""
        self._end_soon()
        self._node_checks.stop()
        deadline = time.monotonic() + _ENDING_SECONDS
        for thread in (*self._loops, self._watchdog):
            thread.join(max(0.0, deadline - time.monotonic()))
        durations.reporter().stop()

    def terminate(self, worker: Any) -> None:
        """End as `stop` does: a run that is cut off is repeated by the next worker."""
        self.stop(worker)

    def _end_soon(self, **_: Any) -> None:
        """Begin to end with the signal, since the worker may take long to let go of the broker."""
        for loop in self._loops:
            loop.stopping.set()
        self._watchdog.stopping.set()
