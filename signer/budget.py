"""The spending limit of one key within a moving window: gas of calls, or wei of transfers."""

import math
from collections import deque

_PARTS = 60


class Budget:
    """Counts in sixtieths of the window; an amount counts for the window and at most one sixtieth longer."""

    def __init__(self, *, seconds: float) -> None:
        self._part_seconds = seconds / _PARTS
        # The number of each part with spending, and the amount.
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
        """Return the amount spent within the window."""
        oldest = math.floor(now / self._part_seconds) - _PARTS
        while self._parts and self._parts[0][0] < oldest:
            self._spent -= self._parts.popleft()[1]
        return self._spent
