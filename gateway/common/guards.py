"""
Bulkhead and circuit breaker for one dependency, such as a node or Stripe.

A request waits for a dependency in a thread. The bulkhead limits how many threads wait for the same dependency. The
circuit breaker opens after several failures in a row: calls then fail at once instead of waiting for a timeout.
"""

import threading
import time
from collections.abc import Iterator
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
        self._failures = 0

    def failed(self) -> None:
        """Record that the dependency did not respond."""
        with self._changed:
            self._failures += 1
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
