"""
The gas that 1.00 of a currency buys, and the margin, if the price of gas or of the coin rises.

A credit is a fixed amount of coin. So a higher gas price makes calls cost more credits and leaves the margin as it is;
only a higher price of the coin takes from the margin.
"""

from decimal import Decimal
from typing import NamedTuple

TIMES = (1, 3, 10)
_WEI = Decimal(10) ** 18


class Outlook(NamedTuple):
    """At `times` today's price: the calls that 1.00 buys at that gas price, and its margin at that coin price."""

    times: int
    calls: Decimal | None
    margin: Decimal | None


def outlooks(
    *, credits_per_major_unit: int, credit_wei: int, call_credits: Decimal | None, coin_price: Decimal | None
) -> list[Outlook]:
    """
    Return what 1.00 buys and leaves at each of `TIMES`.

    `call_credits` is what a call costs on average, `coin_price` the price of a coin in the currency; either may be
    unknown.
    """
    coins = credits_per_major_unit * credit_wei / _WEI
    return [
        Outlook(
            times,
            credits_per_major_unit / (call_credits * times) if call_credits else None,
            None if coin_price is None else 1 - coins * coin_price * times,
        )
        for times in TIMES
    ]
