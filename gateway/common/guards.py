"""
Keeps a part of the outside world that stands still from taking all threads with it.

A request waits for a node or for Stripe in a thread. So only a part of the threads may wait for the same one
(a bulkhead), and one that has failed several times in a row is left alone for a while (a circuit breaker).
A caller that is not let through has an answer at once.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

# With so many failures in a row, it is left alone for so long; then one call at a time tries whether it is back.
_FAILURES = 3
_REST_SECONDS = 10.0


class NotLetThrough(Exception):
    """No call is made: it failed several times in a row just now, or too many threads wait for it."""


class Guard:
    """
    Lets at most `places` threads wait for one part at the same time, and none while it does not answer.

    Where every place is taken, a further caller waits while those inside are served within `patience_seconds`.
    """

    def __init__(self, *, places: int, patience_seconds: float = 0.7) -> None:
        self._places, self._patience_seconds = max(1, places), patience_seconds
        self._changed = threading.Condition()
        # When each of those inside came, the oldest first.
        self._inside: dict[object, float] = {}
        self._failures = 0
        self._rests_until = 0.0

    @property
    def is_tripped(self) -> bool:
        """Whether it has failed so often that only a trial is let through now and then."""
        return self._failures >= _FAILURES

    @contextmanager
    def place(self) -> Iterator[None]:
        """
        Take a place for the length of the block. A block that ends without an error was answered; one that raises
        reports by `answered` or `failed` what that means.

        Raises:
            NotLetThrough: none is free, or the part rests.
        """
        ticket = object()
        with self._changed:
            self._await_place()
            self._inside[ticket] = time.monotonic()
        try:
            yield
            self.answered()
        finally:
            with self._changed:
                del self._inside[ticket]
                self._changed.notify()

    def answered(self) -> None:
        """Note that it answered, whatever it said."""
        self._failures = 0

    def failed(self) -> None:
        """Note that it did not answer."""
        with self._changed:
            self._failures += 1
            if self.is_tripped:
                self._rests_until = time.monotonic() + _REST_SECONDS
                self._changed.notify_all()

    def _await_place(self) -> None:
        while True:
            now = time.monotonic()
            if self.is_tripped:
                if now < self._rests_until:
                    raise NotLetThrough
                # This call is the trial, and the next one comes after another rest.
                self._rests_until = now + _REST_SECONDS
                return
            if len(self._inside) < self._places:
                return
            patience = next(iter(self._inside.values())) + self._patience_seconds - now
            if patience <= 0:
                raise NotLetThrough
            self._changed.wait(patience)
