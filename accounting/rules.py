"""
The arithmetic of a month, as pure functions: money in minor units, gas in wei, whole credits.

The parts of a divided sum always add up to the sum, and no value is rounded twice.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from typing import NamedTuple, TypeVar

from credits.lots import Lot

_Key = TypeVar("_Key")


@dataclass(frozen=True, slots=True)
class Collected:
    """The price of a paid lot: net of tax, and the whole amount charged to the card."""

    currency: str
    net_minor: int
    tax_minor: int
    charged_minor: int


class Parts(NamedTuple):
    """A returned sum, divided by the purpose of the charge."""

    net: int
    tax: int
    other: int


def parts_of(money: Collected, returned_minor: int) -> Parts:
    """Divide returned money in proportion to the charge; the rest from rounding goes to the invoice's other lines."""
    returned = min(max(returned_minor, 0), money.charged_minor)
    net, tax = (
        part * returned // money.charged_minor if money.charged_minor else 0
        for part in (money.net_minor, money.tax_minor)
    )
    return Parts(net, tax, returned - net - tax)


def kept_net(money: Collected, returned_minor: int) -> int:
    """Return the net amount less refunds and disputes."""
    return money.net_minor - parts_of(money, returned_minor).net


def deferred(lot: Lot, kept_minor: int) -> int:
    """
    Return the money owed to the holder of a paid lot: the share of the kept money that its unused credits have.

    It is rounded up, so that revenue is never recognised early.
    """
    return -(-kept_minor * lot.remaining // lot.kept) if lot.kept else 0


def divided(total: int, weights: Mapping[_Key, int | Fraction]) -> dict[_Key, int]:
    """Divide a whole sum in proportion to the weights; the remaining units go to the largest remainders."""
    whole = sum(weights.values())
    if not whole:
        return dict.fromkeys(weights, 0)
    exact = {key: Fraction(total) * Fraction(weight) / Fraction(whole) for key, weight in weights.items()}
    parts = {key: share.numerator // share.denominator for key, share in exact.items()}
    left = total - sum(parts.values())
    # The sort is stable, so the order of the keys decides between equal remainders.
    for key in sorted(exact, key=lambda key: parts[key] - exact[key])[:left]:
        parts[key] += 1
    return parts


def rounded(value: Fraction) -> int:
    """Return the nearest whole number, halves up."""
    return (2 * value.numerator + value.denominator) // (2 * value.denominator)


class Moved(NamedTuple):
    """Money that was returned at a time, or given back if negative."""

    at: datetime
    minor: int


class Match(NamedTuple):
    """When money moved at Stripe, and when our rows knew it; None where the other side has nothing that fits."""

    at_stripe: datetime | None
    in_rows: datetime | None
    minor: int


def matched(at_stripe: Sequence[Moved], in_rows: Sequence[Moved]) -> Iterator[Match]:
    """
    Match the movements of one payment with our rows, both in the order of time.

    A row has what moved since the row before it, so it stands for the first movements in a row that add up to it.
    Movements that add up to nothing, such as a refund that failed, need no row.
    """
    left = list(at_stripe)
    for row in in_rows:
        run = _first_run(left, row.minor)
        if run is None:
            yield Match(None, row.at, row.minor)
            continue
        yield from (Match(moved.at, row.at, moved.minor) for moved in left[run])
        del left[run]
    while (run := _first_run(left, 0)) is not None:
        yield from (Match(moved.at, left[run][-1].at, moved.minor) for moved in left[run])
        del left[run]
    yield from (Match(moved.at, None, moved.minor) for moved in left)


def _first_run(moves: Sequence[Moved], total: int) -> slice | None:
    for first in range(len(moves)):
        sum_ = 0
        for last in range(first, len(moves)):
            sum_ += moves[last].minor
            if sum_ == total:
                return slice(first, last + 1)
    return None
