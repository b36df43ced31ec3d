"""A cache in this process for other servers' responses."""

import threading
import time
from collections.abc import Hashable
from typing import Generic, TypeVar

_Answer = TypeVar("_Answer")
_MOST = 10_000


class Recent(Generic[_Answer]):
    """Responses by their question. Each expires after `seconds`; beyond the maximum number, the oldest are dropped."""

    def __init__(self, *, seconds: float) -> None:
        self._seconds = seconds
        self._lock = threading.Lock()
        self._answers: dict[Hashable, tuple[float, _Answer]] = {}

    def get(self, question: Hashable) -> _Answer | None:
        """Return the response; None if it is missing or expired."""
        until, response = self._answers.get(question, (0.0, None))
        return response if until > time.monotonic() else None

    def keep(self, question: Hashable, response: _Answer) -> None:
        """Store a response."""
        with self._lock:
            # A dictionary keeps insertion order, so the oldest responses come first.
            self._answers.pop(question, None)
            self._answers[question] = time.monotonic() + self._seconds, response
            while len(self._answers) > _MOST:
                del self._answers[next(iter(self._answers))]

    def clear(self) -> None:
        """Forget all responses."""
        self._answers.clear()
