"""The rules of holds, as pure functions."""

from datetime import timedelta

# The period whose earnings are counted; with fewer than `_ENOUGH`, the share of reversals is not meaningful.
COUNTED = timedelta(days=90)
_ENOUGH = 5
# Reversals of offers come within days.
REVERSED_HOLD = timedelta(days=14)


def are_often_reversed(*, earnings: int, reversals: int) -> bool:
    """Return whether a person has enough earnings, and at least half of them were taken back."""
    return earnings >= _ENOUGH and 2 * reversals >= earnings
