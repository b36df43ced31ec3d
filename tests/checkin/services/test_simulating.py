"""Many draws come out as the odds say, and a loaded table would show."""

import math
import secrets
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal

import pytest

from checkin.draw import Draw, Item, draw
from checkin.models import DropTable
from checkin.queries import items_of
from checkin.services.simulating import chi_square_tail, judge, simulate
from tests.checkin.items import item, ticket

# One fair run in a hundred would fall below p = 0.01, so this run is always the same; the command runs others.
_SEED = bytes.fromhex("5eed" * 16)
_DRAWS = 20_000


@pytest.mark.django_db
def test_a_first_table_drops_what_its_odds_promise() -> None:
    items = items_of(list(DropTable.objects.order_by("id")[:1]))

    found = simulate(items=items, draws=_DRAWS, seed=_SEED)

    assert sum(found.counts) == _DRAWS
    assert found.p_value > 0.01
    assert abs(found.index - 1) < 0.005
    assert all(abs(tally.standard_errors) < 4 for tally in found.tallies)


@pytest.mark.parametrize("stolen", [0, 1])
def test_a_table_that_is_not_what_it_says_shows(stolen: int) -> None:
    items = [item("CREDITS", weight=50), item("EXPERIENCE", weight=50)]
    loaded = [replace(one, weight=one.weight - 6 * (place == stolen)) for place, one in enumerate(items)]
    assert judge(items=items, drawn=_draws(loaded)).p_value < 0.01


def test_values_that_are_worth_less_than_promised_show() -> None:
    items = [item("CREDITS", least=Decimal(10), most=Decimal(30))]
    found = judge(items=items, drawn=_draws([replace(items[0], most=Decimal(29))]))
    assert abs(found.index - 1) > 0.005
    assert abs(found.tallies[0].standard_errors) > 4


def _draws(items: list[Item]) -> Iterator[Draw]:
    return (draw(seed=_SEED, ticket=ticket(attempt=number), items=items) for number in range(_DRAWS))


def test_a_type_tells_how_far_it_is_from_its_expected_value() -> None:
    items = [item("CREDITS", weight=1, least=Decimal(10), most=Decimal(10))]
    [tally] = simulate(items=items, draws=50, seed=secrets.token_bytes(32)).tallies
    assert (tally.mean, tally.error, tally.standard_errors) == (10, 0, 0)


# Critical values as statistical tables print them.
@pytest.mark.parametrize(
    ("statistic", "freedom", "tail"),
    [
        (3.841, 1, 0.05),
        (5.991, 2, 0.05),
        (6.635, 1, 0.01),
        (14.067, 7, 0.05),
        (18.307, 10, 0.05),
        (24.725, 11, 0.01),
    ],
)
def test_the_tail_of_chi_square_is_the_one_of_the_tables(statistic: float, freedom: int, tail: float) -> None:
    assert math.isclose(chi_square_tail(statistic, freedom), tail, rel_tol=0.002)


def test_no_deviation_is_no_surprise() -> None:
    assert [chi_square_tail(0.0, freedom) for freedom in range(4)] == [1.0] * 4
