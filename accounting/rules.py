"""
The arithmetic of a month, as pure functions: money in minor units, gas in wei, whole credits.

The parts of a divided sum always add up to the sum, and no value is rounded twice.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple, TypeVar

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


class Part(NamedTuple):
    """Credits of a payment on one account: the number after reversals and transfers, and how many are left unused."""

    kept: int
    remaining: int


class Value(NamedTuple):
    """A part's share of the kept money: the amount owed to its holder, and the amount earned by use."""

    owed: int
    earned: int


def values(parts: Sequence[Part], kept_minor: int) -> list[Value]:
    """
    Divide the kept money of a payment among the accounts that have its credits.

    The amount owed is the share of the kept money that corresponds to unused credits, rounded up, so that revenue is
    never recognised early. The rest is earned, by the parts with used credits, or by the first part if there are none.
    """
    whole, left = sum(part.kept for part in parts), sum(part.remaining for part in parts)
    owed = -(-kept_minor * left // whole) if whole else 0
    owed_by = divided(owed, {place: part.remaining for place, part in enumerate(parts)})
    used = {place: part.kept - part.remaining for place, part in enumerate(parts)}
    earned_by = divided(kept_minor - owed, used if any(used.values()) else {**dict.fromkeys(used, 0), 0: 1})
    return [Value(owed_by[place], earned_by[place]) for place in range(len(parts))]


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
