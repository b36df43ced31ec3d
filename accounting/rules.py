"""
The arithmetic of a month, as pure functions: money in minor units, gas in wei, whole credits.

The parts of a divided sum always add up to the sum, and no value is rounded twice.
"""

from collections.abc import Mapping
from dataclasses import dataclass
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
