"""
Bulkhead and circuit breaker for one dependency, such as a node or Stripe, and shares of what strangers use together.

A request waits for a dependency in a thread. The bulkhead limits how many threads wait for the same dependency. The
circuit breaker opens after several failures in a row: calls then fail at once instead of waiting for a timeout.
"""

import threading
import time
from collections import Counter
from collections.abc import Hashable, Iterator
from contextlib import contextmanager

# The circuit opens after this many failures in a row.
_FAILURES = 3
# While the circuit is open, one trial call is allowed at this interval.
OPEN_SECONDS = 10.0


class CircuitOpen(Exception):
    """No call is made: the last calls failed, or too many threads already wait for the dependency."""


class Guard:
    """
    Allows at most `places` concurrent calls; while the circuit is open, only trial calls.

    If all places are taken, a caller waits until one is free or the oldest call has lasted `wait_seconds`.
    """

    def __init__(self, *, places: int, wait_seconds: float = 0.7) -> None:
        self._places, self._wait_seconds = max(1, places), wait_seconds
        self._changed = threading.Condition()
        # When each call in progress started, the oldest first.
        self._inside: dict[object, float] = {}
        self._failures = 0
        self._next_trial_at = 0.0
        # Whether the last call was answered; False before the first one.
        self.has_responded = False

    @property
    def is_open(self) -> bool:
        """Whether the circuit is open, so that only trial calls are made."""
        return self._failures >= _FAILURES

    @contextmanager
    def place(self) -> Iterator[None]:
        """
        Hold a place for the length of the block.

        A block that ends without an exception counts as answered. A block that raises should first call `responded` or
        `failed`; otherwise the call counts as neither.

        Raises:
            CircuitOpen: no place becomes free in time, or the circuit is open.
        """
        ticket = object()
        with self._changed:
            self._await_place()
            self._inside[ticket] = time.monotonic()
        try:
            yield
            self.responded()
        finally:
            with self._changed:
                del self._inside[ticket]
                self._changed.notify()

    def responded(self) -> None:
        """Record that the dependency responded, even if with an error; this closes the circuit."""
        self._failures, self.has_responded = 0, True

    def failed(self) -> None:
        """Record that the dependency did not respond."""
        with self._changed:
            self._failures, self.has_responded = self._failures + 1, False
            if self.is_open:
                self._next_trial_at = time.monotonic() + OPEN_SECONDS
                self._changed.notify_all()

    def _await_place(self) -> None:
        while True:
            now = time.monotonic()
            if self.is_open:
                if now < self._next_trial_at:
                    raise CircuitOpen
                # This call is the trial. If it does not report back, the next trial is due after another interval.
                self._next_trial_at = now + OPEN_SECONDS
                return
            if len(self._inside) < self._places:
                return
            remaining = next(iter(self._inside.values())) + self._wait_seconds - now
            if remaining <= 0:
                raise CircuitOpen
            self._changed.wait(remaining)


class NoShare(Exception):
    """The caller already has its share, or all places are taken."""


class Shares:
    """Places that strangers share: at most `total` are taken at once, and at most `each` by one of them."""

    def __init__(self, *, total: int, each: int) -> None:
        self._total, self._each = max(1, total), max(1, each)
        self._changed = threading.Condition()
        self._taken: Counter[Hashable] = Counter()

    @contextmanager
    def place(self, owner: Hashable, *, wait_seconds: float = 0.0) -> Iterator[None]:
        """
        Hold one of the owner's places for the length of the block.

        Raises:
            NoShare: no place becomes free for this owner within `wait_seconds`.
        """
        with self._changed:
            if not self._changed.wait_for(lambda: self._is_free(owner), wait_seconds):
                raise NoShare
            self._taken[owner] += 1
        try:
            yield
        finally:
            with self._changed:
                self._taken[owner] -= 1
                # Without the entries of the past, which would be kept for ever.
                self._taken += Counter()
                self._changed.notify_all()

    def _is_free(self, owner: Hashable) -> bool:
        return self._taken.total() < self._total and self._taken[owner] < self._each
