"""Draw many times from one table, and compare the drops with its odds."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal

from checkin.draw import Draw, Item, Odds, Ticket, draw, odds_of, probabilities_of

_ADDRESS = "0x{:040x}"


@dataclass(frozen=True, kw_only=True)
class Tally:
    """What a number of draws gave of one type, beside its exact odds for a single draw."""

    odds: Odds
    total: Decimal
    draws: int

    @property
    def mean(self) -> float:
        """Return the mean value per draw."""
        return float(self.total / self.draws)

    @property
    def error(self) -> float:
        """Return how far the mean is from the expected value, as a fraction of it."""
        return self.mean / float(self.odds.expected) - 1

    @property
    def standard_errors(self) -> float:
        """Return the same in standard errors of the mean: chance alone seldom goes beyond 3."""
        spread = math.sqrt(float(self.odds.variance) / self.draws)
        return (self.mean - float(self.odds.expected)) / spread if spread else 0.0


@dataclass(frozen=True, kw_only=True)
class Simulation:
    """
    How many draws gave which item, and which values.

    `index` weighs all types alike: the mean of each drop's value over the expected value
    of its type, expected to be 1.
    """

    counts: list[int]
    chi_square: float
    p_value: float
    tallies: list[Tally]
    index: float


def simulate(*, items: Sequence[Item], draws: int, seed: bytes) -> Simulation:
    """Draw `draws` times, each time for another user, and judge the drops."""
    tickets = (
        Ticket(profile_address=_ADDRESS.format(number), day="1970-01-01", attempt=1, tables=((0, 0),))
        for number in range(draws)
    )
    return judge(items=items, drawn=(draw(seed=seed, ticket=ticket, items=items) for ticket in tickets))


def judge(*, items: Sequence[Item], drawn: Iterable[Draw]) -> Simulation:
    """Compare draws, one or more, with the odds of the items they are said to be made from."""
    counts, totals = [0] * len(items), [Decimal(0)] * len(items)
    for found in drawn:
        counts[found.chosen] += 1
        totals[found.chosen] += found.result.value
    draws = sum(counts)
    chi_square = _chi_square(counts, [float(chance) * draws for chance in probabilities_of(items)])
    tallies = [_tally(odds, items, totals, draws) for odds in odds_of(items)]
    return Simulation(
        counts=counts,
        chi_square=chi_square,
        p_value=chi_square_tail(chi_square, len(items) - 1),
        tallies=tallies,
        index=_index(tallies),
    )


def _tally(odds: Odds, items: Sequence[Item], totals: Sequence[Decimal], draws: int) -> Tally:
    of_type = [total for item, total in zip(items, totals, strict=True) if item.drop_type == odds.drop_type]
    return Tally(odds=odds, total=sum(of_type, Decimal(0)), draws=draws)


def _index(tallies: Sequence[Tally]) -> float:
    return sum(float(tally.odds.probability) * (1 + tally.error) for tally in tallies)


def _chi_square(counts: Sequence[int], expected: Sequence[float]) -> float:
    return sum((count - wanted) ** 2 / wanted for count, wanted in zip(counts, expected, strict=True))


def chi_square_tail(statistic: float, freedom: int) -> float:
    """Return the probability that chance alone gives a chi-square of at least `statistic`."""
    if freedom == 0:
        return 1.0
    half = statistic / 2
    # Q(s + 1, x) = Q(s, x) + x^s e^-x / Γ(s + 1), from Q(1/2, x) or Q(1, x) up to Q(freedom / 2, x).
    step, tail = (0.5, math.erfc(math.sqrt(half))) if freedom % 2 else (1.0, math.exp(-half))
    while step < freedom / 2:
        tail += math.exp(step * math.log(half) - half - math.lgamma(step + 1)) if half else 0.0
        step += 1
    return min(1.0, tail)
