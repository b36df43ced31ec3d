"""
Batches concurrent calls: one thread does the work for all waiting callers.

A caller that finds no run in progress starts one at once. Callers that arrive during a run wait; then the first of them
runs a batch for them all. So the first of several simultaneous callers runs alone, and the others form the next batch.
An idle process therefore adds no delay, and under load one round trip serves many callers.
The callers of a large batch tend to return together, so the next run first waits a few milliseconds for them.

An owner with many items leaves places to others: while others wait, a batch has at most a share of each owner's items.
"""

import logging
import math
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Hashable, Sequence, Set
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

from gateway.common.errors import DomainError

logger = logging.getLogger(__name__)
# How often a waiting caller checks, once the run has exceeded its time limit, whether it must leave.
CHECK_SECONDS = 0.05
_LONGEST_SECONDS = 3600.0
# The smallest batch whose callers are expected to return together.
_LARGE_BATCH = 4
Item = TypeVar("Item")
Result = TypeVar("Result")
# A run calls it before its first change; no caller can leave afterwards. Returns the places of the remaining callers.
Seal = Callable[[], Set[int]]


@dataclass(frozen=True, slots=True)
class WaitLimits:
    """After `seconds` of a run, at most `callers` continue to wait; the others get the refusal at once."""

    seconds: float
    callers: int
    refusal: Callable[[], Exception]


class _Ticket(Generic[Item, Result]):
    """One caller's item and its outcome."""

    __slots__ = ("gate", "has_left", "item", "leads", "outcome")

    def __init__(self, item: Item) -> None:
        self.item = item
        self.outcome: Result | Exception | None = None
        # Whether the caller was woken to run the next batch, and not because it has an outcome.
        self.leads = False
        self.has_left = False
        self.gate = threading.Lock()
        self.gate.acquire()


class Batcher(Generic[Item, Result]):
    """
    A function of a list of items, which each of many threads calls with one item.

    `run` gets at most `most` items and a `Seal`, which it calls before it changes anything. It returns a result or the
    error to raise for each item, in order; the values for callers that have left are ignored. If `run` raises, each
    item is run again by its own thread, so that one item cannot fail the others; an outage fails all. After a
    batch of four or more items, the next run waits for the same callers as long as one arrives every `pause_seconds`,
    at most `longest_wait_seconds`. With `wait_limits`, callers may leave a run before it calls its `Seal`. While items
    of several owners wait, a batch has at most `share` of each.
    """

    def __init__(
        self,
        run: Callable[[Sequence[Item], Seal], Sequence[Result | Exception]],
        *,
        most: int,
        pause_seconds: float = 0.0,
        longest_wait_seconds: float = 0.0,
        wait_limits: WaitLimits | None = None,
        owner_of: Callable[[Item], Hashable] = lambda _: None,
        share: int = 1,
    ) -> None:
        self._owner_of, self._share = owner_of, share
        self._run, self._most, self._limits = run, most, wait_limits
        self._pause_seconds, self._longest_wait_seconds = pause_seconds, longest_wait_seconds
        self._lock = threading.Lock()
        self._arrived = threading.Condition(self._lock)
        self._waiting: deque[_Ticket[Item, Result]] = deque()
        self._is_running = False
        # The number of callers that the next run waits for, and its deadline.
        self._expected, self._wait_ends_at = 1, 0.0
        # Start of the current run, until it is sealed.
        self._began_at = math.inf
        # Callers that wait for a run of another thread.
        self._followers = 0

    def __call__(self, item: Item) -> Result:
        """Return the result of this item, or raise its error."""
        ticket: _Ticket[Item, Result] = _Ticket(item)
        with self._lock:
            leads = not self._is_running
            if leads:
                self._is_running = True
            else:
                self._refuse_if_stuck()
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

    def _refuse_if_stuck(self) -> None:
        limits = self._limits
        if limits and self._followers >= limits.callers and self._seconds_left() <= 0:
            raise limits.refusal()

    def _seconds_left(self) -> float:
        seconds = self._limits.seconds if self._limits else math.inf
        return min(_LONGEST_SECONDS, self._began_at + seconds - time.monotonic())

    def _await(self, ticket: _Ticket[Item, Result]) -> None:
        """Wait for the outcome, or for this thread's turn to lead a batch; leave if the wait limits are exceeded."""
        try:
            while not ticket.gate.acquire(timeout=max(CHECK_SECONDS, self._seconds_left())):
                self._leave_if_stuck(ticket)
        finally:
            with self._lock:
                self._followers -= 1

    def _leave_if_stuck(self, ticket: _Ticket[Item, Result]) -> None:
        with self._lock:
            limits = self._limits
            if limits is None or self._seconds_left() > 0 or self._followers <= limits.callers:
                return
            if not ticket.gate.locked():
                return
            ticket.has_left = True
            if ticket in self._waiting:
                self._waiting.remove(ticket)
        raise limits.refusal()

    def _lead(self, own: _Ticket[Item, Result]) -> None:
        batch = [own]
        try:
            batch = self._next_batch(own)
            outcomes = self._run([ticket.item for ticket in batch], partial(self._seal, batch))
            for ticket, outcome in zip(batch, outcomes, strict=True):
                ticket.outcome = outcome
        except Exception as error:  # noqa: BLE001 - each item is run again alone, where its own error shows
            if len(batch) == 1 or (isinstance(error, DomainError) and error.is_outage):
                for ticket in batch:
                    ticket.outcome = error
            else:
                logger.warning("%s items are run one by one: %s", len(batch), type(error).__name__)
        finally:
            # Even if this thread is being ended: the others would wait for ever.
            self._hand_over(batch)

    def _next_batch(self, own: _Ticket[Item, Result]) -> list[_Ticket[Item, Result]]:
        """Wait for the expected callers; return the tickets of the batch, the leader's first."""
        with self._arrived:
            self._wait_for_expected()
            batch = self._take_shares(own)
            self._began_at = time.monotonic()
        return batch

    def _take_shares(self, own: _Ticket[Item, Result]) -> list[_Ticket[Item, Result]]:
        """Take the next tickets from those that wait, of each owner its share. Holds the lock."""
        owners = {self._owner_of(ticket.item) for ticket in (own, *self._waiting)}
        share = self._share if len(owners) > 1 else self._most
        batch, later, taken = [own], [], Counter([self._owner_of(own.item)])
        for ticket in self._waiting:
            owner = self._owner_of(ticket.item)
            if len(batch) < self._most and taken[owner] < share:
                taken[owner] += 1
                batch.append(ticket)
            else:
                later.append(ticket)
        self._waiting = deque(later)
        return batch

    def _wait_for_expected(self) -> None:
        """Wait until all expected callers have arrived, none arrives in a pause, or the deadline. Holds the lock."""
        seen = -1
        while seen < len(self._waiting) < self._expected - 1:
            if (seconds := self._wait_ends_at - time.monotonic()) <= 0:
                break
            seen = len(self._waiting)
            self._arrived.wait(min(seconds, self._pause_seconds))

    def _seal(self, batch: Sequence[_Ticket[Item, Result]]) -> Set[int]:
        with self._lock:
            self._began_at = math.inf
            return {place for place, ticket in enumerate(batch) if not ticket.has_left}

    def _hand_over(self, batch: Sequence[_Ticket[Item, Result]]) -> None:
        """Wake the batch's callers with their outcomes, and the first waiting caller to lead the next batch."""
        with self._lock:
            for ticket in batch[1:]:
                ticket.gate.release()
            self._began_at = math.inf
            self._expected = min(self._most, len(batch) + len(self._waiting))
            waits = len(batch) >= _LARGE_BATCH
            self._wait_ends_at = time.monotonic() + (self._longest_wait_seconds if waits else 0.0)
            if self._waiting:
                leader = self._waiting.popleft()
                leader.leads = True
                leader.gate.release()
            else:
                self._is_running = False
