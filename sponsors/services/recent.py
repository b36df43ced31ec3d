"""A cache in this process for other servers' responses."""

import threading
import time
from collections.abc import Hashable
from typing import Generic, TypeVar

_Value = TypeVar("_Value")
_MOST = 10_000


class Recent(Generic[_Value]):
    """Responses by their question. Each expires after `seconds`; beyond the maximum number, the oldest are dropped."""

    def __init__(self, *, seconds: float) -> None:
        self._seconds = seconds
        self._lock = threading.Lock()
        self._values: dict[Hashable, tuple[float, _Value]] = {}

    def get(self, question: Hashable) -> _Value | None:
        """Return the response; None if it is missing or expired."""
        until, response = self._values.get(question, (0.0, None))
        return response if until > time.monotonic() else None

    def keep(self, question: Hashable, response: _Value) -> None:
        """Store a response."""
        with self._lock:
            # A dictionary keeps insertion order, so the oldest responses come first.
            self._values.pop(question, None)
            self._values[question] = time.monotonic() + self._seconds, response
            while len(self._values) > _MOST:
                del self._values[next(iter(self._values))]

    def clear(self) -> None:
        """Forget all responses."""
        self._values.clear()
