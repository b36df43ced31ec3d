"""
The calls that run alone, because their account or relayer is locked by another transaction.

A batch waits only shortly for a lock, since all its calls wait with it. Then each of them runs alone in its own thread.
While a user's call waits there, the user's next calls stay out of batches too.
"""

import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from gateway.common.errors import ServiceUnavailable

# How long a batch waits for each lock.
BATCH_MILLISECONDS = 250
# A user whose last call got no lock is tried in batches again after this time.
_FORGOTTEN_SECONDS = 60.0
_MOST_REMEMBERED = 10_000


@dataclass(frozen=True, eq=False, slots=True)
class Ticket:
    """A call's place in its user's line."""

    user_id: int


class Lines:
    """
    For each user, the line of calls that run alone: one at a time, in the order in which they joined.

    So a locked account occupies at most one thread and one connection of a process. Thread-safe.
    """

    def __init__(self) -> None:
        self._moved = threading.Condition()
        self._lines: dict[int, deque[Ticket]] = {}
        # When the user's last call got no lock.
        self._stuck_at: dict[int, float] = {}

    def has(self, user_id: int) -> bool:
        """Return whether the user's calls have to join the line."""
        with self._moved:
            return user_id in self._lines or self._is_stuck(user_id)

    def join(self, user_id: int) -> Ticket:
        """Give a call a place in the line; its thread then waits for its `turn`."""
        ticket = Ticket(user_id)
        with self._moved:
            self._lines.setdefault(user_id, deque()).append(ticket)
        return ticket

    @contextmanager
    def turn(self, ticket: Ticket) -> Iterator[None]:
        """
        Wait until all earlier calls of the user have ended, and run the block as the only one.

        Raises:
            ServiceUnavailable: an earlier call of the user gets no lock either.
        """
        user_id = ticket.user_id
        try:
            with self._moved:
                line = self._lines[user_id]
                self._moved.wait_for(lambda: line[0] is ticket or self._is_stuck(user_id))
                if line[0] is not ticket:
                    raise locked()
            yield
        finally:
            with self._moved:
                self._lines[user_id].remove(ticket)
                if not self._lines[user_id]:
                    del self._lines[user_id]
                self._moved.notify_all()

    def note(self, user_id: int, *, got_lock: bool) -> None:
        """Note whether the user's call got its locks."""
        with self._moved:
            if got_lock:
                self._stuck_at.pop(user_id, None)
                return
            if len(self._stuck_at) >= _MOST_REMEMBERED:
                self._stuck_at.clear()
            self._stuck_at[user_id] = time.monotonic()
            self._moved.notify_all()

    def _is_stuck(self, user_id: int) -> bool:
        at = self._stuck_at.get(user_id)
        return at is not None and time.monotonic() - at < _FORGOTTEN_SECONDS


def locked() -> ServiceUnavailable:
    """Return the error of a call whose account or relayer another transaction has locked for too long."""
    return ServiceUnavailable("Another transaction uses the account or its relayer. Retry.", retry_after=2)
