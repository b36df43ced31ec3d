"""
The arithmetic of a month, on arguments alone: money in minor units, gas in wei, credits whole.

Every sum is divided so that its parts add up to it; nothing is rounded twice.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple, TypeVar

from credits.lots import Lot

_Key = TypeVar("_Key")


@dataclass(frozen=True, slots=True)
class Collected:
    """The money that a paid lot was sold for: net of tax, and all that the card was charged."""

    currency: str
    net_minor: int
    tax_minor: int
    charged_minor: int


class Parts(NamedTuple):
    """A returned sum by what it was charged for."""

    net: int
    tax: int
    other: int


def parts_of(money: Collected, returned_minor: int) -> Parts:
    """Divide returned money as the charge was divided; the other lines of the invoice have what rounding leaves."""
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
    Return the money that is owed to the holder of a paid lot: the kept money's share of the credits that are left.

    A fraction of a minor unit counts as owed, so revenue is never recognised early.
    """
    return -(-kept_minor * lot.remaining // lot.kept) if lot.kept and lot.remaining else 0


def divided(total: int, weights: Mapping[_Key, int | Fraction]) -> dict[_Key, int]:
    """Divide a whole sum in proportion to the weights; units that are left go to the largest remainders."""
    whole = sum(weights.values())
    if not whole:
        return dict.fromkeys(weights, 0)
    exact = {key: Fraction(total) * Fraction(weight) / Fraction(whole) for key, weight in weights.items()}
    parts = {key: share.numerator // share.denominator for key, share in exact.items()}
    left = total - sum(parts.values())
    # Stable, so the order of the keys decides between equal remainders.
    for key in sorted(exact, key=lambda key: parts[key] - exact[key])[:left]:
        parts[key] += 1
    return parts


def rounded(value: Fraction) -> int:
    """Return the nearest whole number, halves up."""
    return (2 * value.numerator + value.denominator) // (2 * value.denominator)
