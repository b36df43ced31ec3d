"""
The calls that 1.00 of a currency buys, and the margin, if the price of gas or of the coin rises.

A credit is a fixed amount of coin. A higher gas price makes calls cost more credits but does not change the margin; a
higher price of the coin reduces the margin.
"""

from decimal import Decimal
from typing import NamedTuple

TIMES = (1, 3, 10)
_WEI = Decimal(10) ** 18


class Outlook(NamedTuple):
    """The calls that 1.00 buys if gas costs `times` as much as today, and its margin if the coin does."""

    times: int
    calls: Decimal | None
    margin: Decimal | None


def outlooks(
    *, credits_per_major_unit: int, credit_wei: int, call_credits: Decimal | None, coin_price: Decimal | None
) -> list[Outlook]:
    """
    Return the outlook for each factor in `TIMES`.

    `call_credits` is the average cost of a call, `coin_price` the price of a coin in the currency; either may be None.
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
