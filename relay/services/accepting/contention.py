"""
Queues of calls that run outside batches, because another transaction has locked their account or relayer.

A batch waits only briefly for a lock, since all its calls wait with it. After that, each call runs in its own thread.
While one of them waits for its lock, later calls that need the same lock also stay out of batches.
"""

import threading
import time
from collections import deque
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from gateway.common.errors import ServiceUnavailable

# How long a batch waits for each lock.
BATCH_MILLISECONDS = 250
# How long any call waits for a relayer: less than that, because the call holds its account's lock while it waits.
RELAYER_MILLISECONDS = 200
# This long after a line's last call got no lock, its calls are tried in batches again.
_FORGOTTEN_SECONDS = 60.0
_MOST_REMEMBERED = 10_000


# A line's name: a user, whose account may be locked; or a channel, whose calls in flight bind it to one relayer.
Line = tuple[Hashable, ...]


@dataclass(frozen=True, eq=False, slots=True)
class Ticket:
    """A call's place in a line."""

    line: Line


class Lines:
    """
    The lines of calls that run outside batches: one call of each line at a time, in the order of joining. Thread-safe.

    A locked row therefore occupies at most one database connection of a process for each line.
    """

    def __init__(self) -> None:
        self._moved = threading.Condition()
        self._lines: dict[Line, deque[Ticket]] = {}
        # When the line's last call got no lock.
        self._stuck_at: dict[Line, float] = {}

    def has(self, line: Line) -> bool:
        """Return whether calls must join the line instead of a batch."""
        with self._moved:
            return line in self._lines or self._is_stuck(line)

    def is_blocked(self, line: Line) -> bool:
        """Return whether a call of the line waits for a lock that an earlier call did not get."""
        with self._moved:
            return line in self._lines and self._is_stuck(line)

    def join(self, line: Line) -> Ticket:
        """Give a call a place in the line; its thread then waits for its `turn`."""
        ticket = Ticket(line)
        with self._moved:
            self._lines.setdefault(line, deque()).append(ticket)
        return ticket

    @contextmanager
    def turn(self, ticket: Ticket) -> Iterator[None]:
        """
        Wait until all earlier calls of the line have ended, then run the block while later ones wait.

        Raises:
            ServiceUnavailable: an earlier call of the line did not get its lock.
        """
        line = ticket.line
        try:
            with self._moved:
                tickets = self._lines[line]
                self._moved.wait_for(lambda: tickets[0] is ticket or self._is_stuck(line))
                if tickets[0] is not ticket:
                    raise locked()
            yield
        finally:
            with self._moved:
                self._lines[line].remove(ticket)
                if not self._lines[line]:
                    del self._lines[line]
                self._moved.notify_all()

    def note(self, line: Line, *, got_lock: bool) -> None:
        """Record whether the line's call got its locks."""
        with self._moved:
            if got_lock:
                self._stuck_at.pop(line, None)
                return
            if len(self._stuck_at) >= _MOST_REMEMBERED:
                self._stuck_at.clear()
            self._stuck_at[line] = time.monotonic()
            self._moved.notify_all()

    def _is_stuck(self, line: Line) -> bool:
        at = self._stuck_at.get(line)
        return at is not None and time.monotonic() - at < _FORGOTTEN_SECONDS


def locked() -> ServiceUnavailable:
    """Return the error for a call whose account or relayer another transaction has locked for too long."""
    return ServiceUnavailable("Another transaction uses the account or its relayer. Retry.", retry_after=2)
