"""How long credits last at a person's own rate of use; pure functions."""

from datetime import timedelta
from enum import StrEnum
from math import ceil

# Use is the average over this period, or over the part of it since the first charge.
USE_PERIOD = timedelta(days=14)
LOW_DAYS = 3


class Level(StrEnum):
    """How long a person's credits will last."""

    ENOUGH = "enough"
    LOW = "low"
    DEPLETED = "depleted"


def daily_use(*, charged: int, since_first: timedelta) -> int:
    """Return the credits used per day, rounded up; `since_first` is the time since the first charge, at least a day."""
    days = max(timedelta(days=1), min(since_first, USE_PERIOD)) / timedelta(days=1)
    return max(0, ceil(charged / days))


def level_of(*, available: int, use: int) -> Level:
    """Return the level of credits at a daily use; without use, any credits above 0 are enough."""
    if available <= 0:
        return Level.DEPLETED
    return Level.LOW if available < LOW_DAYS * use else Level.ENOUGH


def days_left(*, available: int, use: int) -> int | None:
    """Return for how many whole days the credits last; None without use."""
    return max(0, available) // use if use else None
