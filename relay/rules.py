"""Whether a chain's price of a credit can still be used: its age, and its distance from the recorded rates."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import NamedTuple

from gateway.chain.types import PriceLimits


class RecordedRate(NamedTuple):
    """The price of one coin in a currency on a day."""

    coin: str
    currency: str
    day: date
    price: Decimal


class Priced(NamedTuple):
    """A price of a credit, and the coin that it is in."""

    credit_wei: int
    coin: str


def deviation(price: Priced, home: Priced, rates: Iterable[RecordedRate]) -> Fraction | None:
    """
    Return by which fraction a credit at this price is worth more than at home; None without rates of both coins.

    `rates` has the newest rate of each coin in each currency. Of the currencies in which both coins have one, the one
    counts whose older rate is the newest.
    """
    by_currency: dict[str, dict[str, RecordedRate]] = {}
    for rate in rates:
        by_currency.setdefault(rate.currency, {})[rate.coin] = rate
    both = [
        (min(own[price.coin].day, own[home.coin].day), currency, own)
        for currency, own in by_currency.items()
        if price.coin in own and home.coin in own
    ]
    if not both:
        return None
    _, _, own = max(both, key=lambda one: one[:2])
    worth, at_home = (one.credit_wei * Fraction(own[one.coin].price) for one in (price, home))
    return worth / at_home - 1


@dataclass(frozen=True, slots=True)
class PriceUse:
    """How much of its limits a price has used: 1 is all of its days, or its whole margin. Home has no limits."""

    age_share: Fraction = Fraction(0)
    margin_share: Fraction = Fraction(0)

    @property
    def is_too_old(self) -> bool:
        return self.age_share > 1

    @property
    def is_off_margin(self) -> bool:
        return self.margin_share > 1

    @property
    def is_within(self) -> bool:
        """Whether calls may be charged at the price."""
        return not self.is_too_old and not self.is_off_margin


def price_use(limits: PriceLimits | None, *, age: timedelta, deviation: Fraction | None) -> PriceUse:
    """Return how much of its limits a price has used. Without a deviation, only its age counts."""
    if limits is None:
        return PriceUse()
    return PriceUse(
        age_share=Fraction(age // timedelta(seconds=1), limits.days * 24 * 3600),
        margin_share=abs(deviation or Fraction(0)) * 100 / limits.margin_percent,
    )
