"""
Threads of one process that want the same thing at the same moment do it together.

The first caller runs at once. Those that come while it runs wait, and the first of them then runs for all of them:
so a single caller waits for nobody, and under load one round trip serves many. Callers who were answered together
come back together, so a run after a shared one first waits a moment for them. Callers of two steps one after the other
stay together by a `Round`.
"""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Generic, TypeVar

from gateway.common.errors import DomainError

logger = logging.getLogger(__name__)
# How often callers whose patience has ended look whether they may stay.
_LOOK_SECONDS = 0.05
Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Patience:
    """When a run has taken so many seconds, only so many callers stay; the others get the refusal at once."""

    seconds: float
    callers: int
    refusal: Callable[[], Exception]


class Round:
    """
    Callers who take two steps together: the second step waits for those who took the first, and the next first step
    for those who are in the second. Otherwise the callers would part into a group in each step, and runs would be half
    as large.

    No wait is longer than `seconds`: whoever needs longer between the steps goes with others.
    """

    def __init__(self, *, seconds: float) -> None:
        self._seconds = seconds
        self._changed = threading.Condition()
        # How many of the steps each caller has come to, by the identity of what it brought, and how many to 1 and 2.
        self._steps: dict[int, int] = {}
        self._between = self._in_second = 0

    @contextmanager
    def caller(self, item: object) -> Iterator[None]:
        """Count the caller who brings this item, to the end of its second step or until it gives up."""
        with self._changed:
            self._steps[id(item)] = 0
        try:
            yield
        finally:
            with self._changed:
                step = self._steps.pop(id(item))
                self._between -= step == 1
                self._in_second -= step == 2
                if step:
                    self._notify()

    def took_first(self, items: Iterable[object]) -> None:
        """Note that the first step is taken by these, of whom some may have left meanwhile."""
        with self._changed:
            for item in items:
                if id(item) in self._steps:
                    self._steps[id(item)] = 1
                    self._between += 1

    def came_to_second(self, item: object) -> None:
        """Note that the caller of this item is about to take the second step."""
        with self._changed:
            self._between -= self._steps[id(item)] == 1
            self._steps[id(item)] = 2
            self._in_second += 1
            self._notify()

    def before_first(self) -> None:
        """Wait until nobody is between the steps, or in the second."""
        with self._changed:
            self._changed.wait_for(lambda: not self._between and not self._in_second, self._seconds)

    def before_second(self) -> None:
        """Wait until nobody is between the steps."""
        with self._changed:
            self._changed.wait_for(lambda: not self._between, self._seconds)

    def _notify(self) -> None:
        """Wake those who wait, unless they would all go on waiting: each of them would take the interpreter in vain."""
        if not self._between:
            self._changed.notify_all()


class _Ticket(Generic[Item, Result]):
    """One caller's item, and what became of it."""

    __slots__ = ("gate", "item", "leads", "outcome")

    def __init__(self, item: Item) -> None:
        self.item = item
        self.outcome: Result | Exception | None = None
        # Told to run the next batch instead of getting an outcome.
        self.leads = False
        self.gate = threading.Lock()
        self.gate.acquire()


class Together(Generic[Item, Result]):
    """
    A function of a list of items, called with one item by each of many threads.

    `run` returns for each item a result or the error to raise, in order. If it raises, each item is run alone, by
    the thread that brought it, so that one item cannot fail the others; an outage fails all. At most `most` items run
    together, and no two with the same `key`: the second waits for the next run. Before a run, `before_run` may wait
    for callers who are on their way, and after a shared run the next one waits `batch_wait_seconds` of so many callers,
    for those who come back. With `patience`, callers may leave while `run` goes on, so it must change nothing.
    """

    def __init__(
        self,
        run: Callable[[Sequence[Item]], Sequence[Result | Exception]],
        *,
        most: int,
        key: Callable[[Item], Hashable] = id,
        batch_wait_seconds: Callable[[int], float] = lambda callers: 0.0,
        before_run: Callable[[], None] = lambda: None,
        patience: Patience | None = None,
    ) -> None:
        self._run, self._most, self._key, self._batch_wait_seconds = run, most, key, batch_wait_seconds
        self._before_run, self._patience = before_run, patience
        self._lock = threading.Lock()
        self._waiting: deque[_Ticket[Item, Result]] = deque()
        self._is_running = False
        # Of the last run.
        self._size = 1
        self._began_at = 0.0
        # Callers who wait for a run that somebody else leads.
        self._followers = 0

    def __call__(self, item: Item) -> Result:
        """Return the result of this item, or raise its error."""
        ticket: _Ticket[Item, Result] = _Ticket(item)
        with self._lock:
            leads = not self._is_running
            if leads:
                self._is_running, self._began_at = True, time.monotonic()
            else:
                self._refuse_where_stuck()
                self._followers += 1
                self._waiting.append(ticket)
        if not leads:
            self._await(ticket)
            leads = ticket.leads
        if leads:
            self._lead(ticket)
        outcome = ticket.outcome
        if outcome is None:
            (outcome,) = self._run([item])
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def _refuse_where_stuck(self) -> None:
        patience = self._patience
        if patience and self._followers >= patience.callers and self._patience_left() <= 0:
            raise patience.refusal()

    def _patience_left(self) -> float:
        seconds = self._patience.seconds if self._patience else 0.0
        return self._began_at + seconds - time.monotonic()

    def _await(self, ticket: _Ticket[Item, Result]) -> None:
        """Wait for the outcome, or to lead; leave where the patience ends and too many wait."""
        try:
            if self._patience is None:
                ticket.gate.acquire()
                return
            while not ticket.gate.acquire(timeout=max(_LOOK_SECONDS, self._patience_left())):
                with self._lock:
                    is_patient = self._patience_left() > 0 or self._followers <= self._patience.callers
                    if is_patient or ticket.leads:
                        continue
                    if ticket in self._waiting:
                        self._waiting.remove(ticket)
                raise self._patience.refusal()
        finally:
            with self._lock:
                self._followers -= 1

    def _lead(self, own: _Ticket[Item, Result]) -> None:
        batch = [own]
        try:
            self._before_run()
            if self._size > 1 and (seconds := self._batch_wait_seconds(self._size)):
                time.sleep(seconds)
            batch = self._next_batch(own)
            self._began_at = time.monotonic()
            self._size = len(batch)
            outcomes = self._run([ticket.item for ticket in batch])
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
            for ticket in batch[1:]:
                ticket.gate.release()
            self._hand_over()

    def _next_batch(self, own: _Ticket[Item, Result]) -> list[_Ticket[Item, Result]]:
        """Return the leader's ticket, and those of the waiting that may run with it."""
        batch, keys, left = [own], {self._key(own.item)}, deque[_Ticket[Item, Result]]()
        with self._lock:
            for ticket in self._waiting:
                key = self._key(ticket.item)
                if len(batch) < self._most and key not in keys:
                    batch.append(ticket)
                    keys.add(key)
                else:
                    left.append(ticket)
            self._waiting = left
        return batch

    def _hand_over(self) -> None:
        with self._lock:
            if not self._waiting:
                self._is_running = False
                return
            leader = self._waiting.popleft()
            leader.leads = True
        leader.gate.release()
