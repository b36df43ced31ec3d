"""The rules of holds: arithmetic on arguments."""

from datetime import timedelta

# Earnings of this period are counted; with fewer than `_ENOUGH`, their share of reversals means nothing.
COUNTED = timedelta(days=90)
_ENOUGH = 5
# Reversals of offers come within days.
REVERSED_HOLD = timedelta(days=14)


def are_often_reversed(*, earnings: int, reversals: int) -> bool:
    """Return whether at least half of a person's earnings, and of five at least, were taken back."""
    return earnings >= _ENOUGH and 2 * reversals >= earnings
