"""
Threads of one process that want the same thing at the same moment do it together.

The first caller runs at once. Those that come while it runs wait, and the first of them then runs for all of them:
so a single caller waits for nobody, and under load one round trip serves many. Callers who were answered together
come back together, so a run after one of many first waits a moment for them.
"""

import logging
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

from gateway.common.errors import DomainError

logger = logging.getLogger(__name__)
# How often callers whose patience has ended look whether they may stay.
_LOOK_SECONDS = 0.05
_LONGEST_SECONDS = 3600.0
# So many in a run are callers who come back; a few may as well come at times of their own.
_MANY = 4
Item = TypeVar("Item")
Result = TypeVar("Result")
# Called by a run before it changes anything: from then on nobody leaves. Returns the places of those who have not left.
Stay = Callable[[], Set[int]]


@dataclass(frozen=True, slots=True)
class Patience:
    """When a run has taken so many seconds, only so many callers stay; the others get the refusal at once."""

    seconds: float
    callers: int
    refusal: Callable[[], Exception]


class _Ticket(Generic[Item, Result]):
    """One caller's item, and what became of it."""

    __slots__ = ("gate", "has_left", "item", "leads", "outcome")

    def __init__(self, item: Item) -> None:
        self.item = item
        self.outcome: Result | Exception | None = None
        # Told to run the next batch instead of getting an outcome.
        self.leads = False
        self.has_left = False
        self.gate = threading.Lock()
        self.gate.acquire()


class Together(Generic[Item, Result]):
    """
    A function of a list of items, called with one item by each of many threads.

    `run` gets the items, at most `most` of them, and a `Stay`, which it calls before it changes anything. It returns
    for each item a result or the error to raise, in order; for the items of those who have left, anything. If it
    raises, each item is run alone, by the thread that brought it, so that one item cannot fail the others; an outage
    fails all. A run after one of four items or more waits for those who took part while one comes every
    `pause_seconds`, and not longer than `longest_wait_seconds`. With `patience`, callers may leave a run before it
    calls its `Stay`.
    """

    def __init__(
        self,
        run: Callable[[Sequence[Item], Stay], Sequence[Result | Exception]],
        *,
        most: int,
        pause_seconds: float = 0.0,
        longest_wait_seconds: float = 0.0,
        patience: Patience | None = None,
    ) -> None:
        self._run, self._most, self._patience = run, most, patience
        self._pause_seconds, self._longest_wait_seconds = pause_seconds, longest_wait_seconds
        self._lock = threading.Lock()
        self._arrived = threading.Condition(self._lock)
        self._waiting: deque[_Ticket[Item, Result]] = deque()
        self._is_running = False
        # How many callers the next run waits for, and until when.
        self._expected, self._wait_ends_at = 1, 0.0
        # When the run began that may still be left.
        self._began_at = math.inf
        # Callers who wait for a run that somebody else leads.
        self._followers = 0

    def __call__(self, item: Item) -> Result:
        """Return the result of this item, or raise its error."""
        ticket: _Ticket[Item, Result] = _Ticket(item)
        with self._lock:
            leads = not self._is_running
            if leads:
                self._is_running = True
            else:
                self._refuse_where_stuck()
                self._followers += 1
                self._waiting.append(ticket)
                if len(self._waiting) + 1 == self._expected:
                    self._arrived.notify()
        if not leads:
            self._await(ticket)
            leads = ticket.leads
        if leads:
            self._lead(ticket)
        outcome = ticket.outcome
        if outcome is None:
            (outcome,) = self._run([item], lambda: {0})
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def _refuse_where_stuck(self) -> None:
        patience = self._patience
        if patience and self._followers >= patience.callers and self._patience_left() <= 0:
            raise patience.refusal()

    def _patience_left(self) -> float:
        seconds = self._patience.seconds if self._patience else math.inf
        return min(_LONGEST_SECONDS, self._began_at + seconds - time.monotonic())

    def _await(self, ticket: _Ticket[Item, Result]) -> None:
        """Wait for the outcome, or to lead; leave where the patience ends and too many wait."""
        try:
            while not ticket.gate.acquire(timeout=max(_LOOK_SECONDS, self._patience_left())):
                self._leave_where_stuck(ticket)
        finally:
            with self._lock:
                self._followers -= 1

    def _leave_where_stuck(self, ticket: _Ticket[Item, Result]) -> None:
        with self._lock:
            patience = self._patience
            if patience is None or self._patience_left() > 0 or self._followers <= patience.callers:
                return
            if not ticket.gate.locked():
                return
            ticket.has_left = True
            if ticket in self._waiting:
                self._waiting.remove(ticket)
        raise patience.refusal()

    def _lead(self, own: _Ticket[Item, Result]) -> None:
        batch = [own]
        try:
            batch = self._next_batch(own)
            outcomes = self._run([ticket.item for ticket in batch], partial(self._stay, batch))
            for ticket, outcome in zip(batch, outcomes, strict=True):
                ticket.outcome = outcome
        except Exception as error:  # noqa: BLE001 - each item is run again alone, where its own error shows
            if len(batch) == 1 or (isinstance(error, DomainError) and error.is_outage):
                for ticket in batch:
                    ticket.outcome = error
            else:
                logger.warning("%s items are run one by one: %s", len(batch), type(error).__name__)
        finally:
            # Also where this thread is being ended: the others must not wait for ever.
            self._hand_over(batch)

    def _next_batch(self, own: _Ticket[Item, Result]) -> list[_Ticket[Item, Result]]:
        """Wait for those who are expected; return the leader's ticket, and those of the waiting that run with it."""
        with self._arrived:
            self._wait_for_expected()
            count = min(self._most - 1, len(self._waiting))
            batch = [own, *(self._waiting.popleft() for _ in range(count))]
            self._began_at = time.monotonic()
        return batch

    def _wait_for_expected(self) -> None:
        """Wait, with the lock, until all have come who are expected, none came in a pause, or it takes too long."""
        seen = -1
        while seen < len(self._waiting) < self._expected - 1:
            if (seconds := self._wait_ends_at - time.monotonic()) <= 0:
                break
            seen = len(self._waiting)
            self._arrived.wait(min(seconds, self._pause_seconds))

    def _stay(self, batch: Sequence[_Ticket[Item, Result]]) -> Set[int]:
        with self._lock:
            self._began_at = math.inf
            return {place for place, ticket in enumerate(batch) if not ticket.has_left}

    def _hand_over(self, batch: Sequence[_Ticket[Item, Result]]) -> None:
        """Let the others of the batch go on, and the first who waits lead the next one."""
        with self._lock:
            for ticket in batch[1:]:
                ticket.gate.release()
            self._began_at = math.inf
            self._expected = min(self._most, len(batch) + len(self._waiting))
            waits = len(batch) >= _MANY
            self._wait_ends_at = time.monotonic() + (self._longest_wait_seconds if waits else 0.0)
            if self._waiting:
                leader = self._waiting.popleft()
                leader.leads = True
                leader.gate.release()
            else:
                self._is_running = False
