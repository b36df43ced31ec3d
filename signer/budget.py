"""What one key may spend within a moving window: gas of calls, or wei of transfers."""

import math
from collections import deque

_PARTS = 60


class Budget:
    """Counts by sixtieths of its window; what was spent counts for the window and at most one part more."""

    def __init__(self, *, seconds: float) -> None:
        self._part_seconds = seconds / _PARTS
        # The number of each part in which something was spent, and how much.
        self._parts: deque[tuple[int, int]] = deque()
        self._spent = 0

    def spend(self, amount: int, *, now: float) -> None:
        """Count the amount."""
        part = math.floor(now / self._part_seconds)
        if self._parts and self._parts[-1][0] >= part:
            number, before = self._parts.pop()
            self._parts.append((number, before + amount))
        else:
            self._parts.append((part, amount))
        self._spent += amount

    def spent(self, *, now: float) -> int:
        """Return what was spent within the window."""
        oldest = math.floor(now / self._part_seconds) - _PARTS
        while self._parts and self._parts[0][0] < oldest:
            self._spent -= self._parts.popleft()[1]
        return self._spent
