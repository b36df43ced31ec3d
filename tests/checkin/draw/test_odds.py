"""Odds are exact: a count of all equally likely outcomes gives the same numbers."""

from decimal import Decimal
from fractions import Fraction

from checkin.draw import Item, odds_of, probabilities_of, step_of
from tests.checkin.items import TYPES, item, items


def _by_counting(offered: list[Item], drop_type: str) -> tuple[Fraction, Fraction, Fraction]:
    """Return probability, mean and variance by walking through every value of every item."""
    total = sum(one.weight for one in offered)
    chances: list[tuple[Fraction, Fraction]] = []
    for one in offered:
        for index in range(one.values):
            chance = Fraction(one.weight, total) / one.values
            value = Fraction(one.drop_at(index).value) if one.drop_type == drop_type else Fraction(0)
            chances.append((chance, value))
    mean = sum((chance * value for chance, value in chances), Fraction(0))
    variance = sum((chance * (value - mean) ** 2 for chance, value in chances), Fraction(0))
    hit = sum(Fraction(one.weight, total) for one in offered if one.drop_type == drop_type)
    return Fraction(hit), mean, variance


def test_odds_agree_with_a_count_of_every_outcome() -> None:
    for _ in range(5):
        offered = items()
        for odds in odds_of(offered):
            assert (odds.probability, odds.expected, odds.variance) == _by_counting(offered, odds.drop_type)
            assert odds.most == max(one.most for one in offered if one.drop_type == odds.drop_type)


def test_every_type_is_listed_once_and_the_probabilities_add_up() -> None:
    offered = [item(name) for name in (*TYPES, *reversed(TYPES))]
    assert [odds.drop_type for odds in odds_of(offered)] == list(TYPES)
    assert sum(odds.probability for odds in odds_of(offered)) == 1
    assert sum(probabilities_of(offered)) == 1


def test_more_draws_add_up() -> None:
    once = odds_of([item("EXPERIENCE"), item("CREDITS")])[0]
    thrice = once.over(3)
    assert (thrice.expected, thrice.variance) == (3 * once.expected, 3 * once.variance)
    assert (thrice.most, thrice.probability) == (3 * once.most, once.probability)


def test_an_item_counts_the_values_on_its_grid() -> None:
    for name in TYPES:
        step = step_of(name)
        assert item(name, least=step, most=step).values == 1
        assert item(name, least=2 * step, most=10 * step).values == 9
    assert item("BONUS_CREDITS_BACK", least=Decimal("0.01"), most=Decimal("0.02")).values == 101
