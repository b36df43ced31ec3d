"""Pure functions that divide a clawback of a payment among the accounts that have its credits."""

from collections.abc import Sequence
from typing import NamedTuple


class Part(NamedTuple):
    """Credits of a payment on one account: the payer's if `lot` is None, else that lot's sponsor's."""

    lot: int | None
    credits: int


def taken(credits: int, moved: Sequence[Part]) -> list[Part]:
    """
    Divide credits to take back: first among transferred lots, the newest first; the rest comes from the payer.

    `moved` has the credits of the payment that each transferred lot still has, oldest first.
    """
    missing, parts = credits, []
    for lot, most in reversed(moved):
        if part := min(most, missing):
            parts.append(Part(lot, part))
            missing -= part
    return [*parts, Part(None, missing)] if missing else parts


def returned(credits: int, earlier: Sequence[Part]) -> list[Part]:
    """
    Divide credits to give back among the accounts from which they were taken, the last taken first.

    `earlier` has the earlier clawbacks, oldest first; negative credits were given back.
    """
    left: list[Part] = []
    for lot, moved in earlier:
        if moved > 0:
            left.append(Part(lot, moved))
        else:
            left = _without(left, -moved, lot=lot)
    missing = credits
    sums: dict[int | None, int] = {}
    for lot, most in reversed(left):
        part = min(most, missing)
        missing -= part
        if part:
            sums[lot] = sums.get(lot, 0) + part
    return [Part(*item) for item in sums.items()]


def _without(parts: Sequence[Part], credits: int, *, lot: int | None) -> list[Part]:
    """Return the parts after subtracting credits from those of one lot, starting with the last."""
    missing, rest = credits, []
    for part in reversed(parts):
        less = min(part.credits, missing) if part.lot == lot else 0
        missing -= less
        if part.credits > less:
            rest.append(Part(part.lot, part.credits - less))
    return rest[::-1]
