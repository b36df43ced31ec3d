"""Who bears a clawback of a payment whose credits were transferred in part; on arguments alone."""

from collections.abc import Sequence
from typing import NamedTuple


class Part(NamedTuple):
    """Credits of a payment at one account: of the person's own if `lot` is None, else of that transferred lot."""

    lot: int | None
    credits: int


def taken(credits: int, moved: Sequence[Part]) -> list[Part]:
    """
    Divide credits to take back: what transfers have moved first, the newest first, then the person's.

    `moved` has what the transferred lots still have of the payment, oldest first.
    """
    missing, parts = credits, []
    for lot, most in reversed(moved):
        if part := min(most, missing):
            parts.append(Part(lot, part))
            missing -= part
    return [*parts, Part(None, missing)] if missing else parts


def returned(credits: int, earlier: Sequence[Part]) -> list[Part]:
    """
    Divide credits to give back, so that each account gets what was taken from it, the last taken first.

    `earlier` has what was taken so far, oldest first; negative credits were given back.
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
    """Return the parts less credits of one lot, the last parts first."""
    missing, rest = credits, []
    for part in reversed(parts):
        less = min(part.credits, missing) if part.lot == lot else 0
        missing -= less
        if part.credits > less:
            rest.append(Part(part.lot, part.credits - less))
    return rest[::-1]
