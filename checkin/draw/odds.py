"""What a table is worth, exactly: probabilities, expected values, variances, the most that can drop."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from checkin.draw.items import Item, grain_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Odds:
    """
    What a number of draws gives of one type.

    `probability` is that of a single draw; `expected`, `variance` and `most` are of the
    sum over all draws, where a draw that gives another type counts as 0.
    """

    drop_type: str
    probability: Fraction
    expected: Fraction
    variance: Fraction
    most: Decimal

    def over(self, draws: int) -> "Odds":
        """Return the odds of so many times as many draws; draws do not depend on each other."""
        return Odds(
            drop_type=self.drop_type,
            probability=self.probability,
            expected=self.expected * draws,
            variance=self.variance * draws,
            most=self.most * draws,
        )


def probabilities_of(items: Sequence[Item]) -> list[Fraction]:
    """Return the probability of each item, in order; they add up to 1."""
    total = sum(item.weight for item in items)
    return [Fraction(item.weight, total) for item in items]


def odds_of(items: Sequence[Item]) -> list[Odds]:
    """Return the odds of one draw for every type among the items, in the order of first appearance."""
    weighed = list(zip(items, probabilities_of(items), strict=True))
    types = dict.fromkeys(item.drop_type for item in items)
    return [_odds_of_type(name, [pair for pair in weighed if pair[0].drop_type == name]) for name in types]


def _odds_of_type(drop_type: str, weighed: Sequence[tuple[Item, Fraction]]) -> Odds:
    expected = sum((chance * _mean(item) for item, chance in weighed), Fraction(0))
    squares = sum((chance * (_variance(item) + _mean(item) ** 2) for item, chance in weighed), Fraction(0))
    return Odds(
        drop_type=drop_type,
        probability=sum((chance for _, chance in weighed), Fraction(0)),
        expected=expected,
        variance=squares - expected**2,
        most=max(item.most for item, _ in weighed),
    )


def _mean(item: Item) -> Fraction:
    return (Fraction(item.least) + Fraction(item.most)) / 2


def _variance(item: Item) -> Fraction:
    """Return the variance of n equally likely values that lie a grain g apart: g² (n² − 1) / 12."""
    return Fraction(grain_of(item.drop_type)) ** 2 * (item.values**2 - 1) / 12
