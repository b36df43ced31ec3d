"""A draw rolls a drop for every item and awards one of them."""

import random
import secrets
from dataclasses import replace
from decimal import Decimal

import pytest

from checkin.draw import Draw, Item, draw
from tests.checkin.items import TYPES, identity, item, items
from tests.factories import random_address


def test_the_same_arguments_give_the_same_draw() -> None:
    seed, stub, offered = secrets.token_bytes(32), identity(), items()
    assert draw(seed=seed, identity=stub, items=offered) == draw(
        seed=seed, identity=stub, items=list(offered)
    )


def test_a_drop_is_rolled_for_every_item_in_order() -> None:
    offered = [item(name) for name in TYPES]
    drawn = draw(seed=secrets.token_bytes(32), identity=identity(), items=offered)

    assert [drop.drop_type for drop in drawn.possible] == list(TYPES)
    assert [drop.minutes for drop in drawn.possible] == [one.minutes for one in offered]
    assert drawn.result is drawn.possible[drawn.chosen]


@pytest.mark.parametrize("drop_type", TYPES)
def test_values_lie_on_the_grid_between_the_bounds_and_both_bounds_can_drop(drop_type: str) -> None:
    step = Decimal(1) if drop_type in TYPES[:2] else Decimal("0.0001")
    offered = item(drop_type, least=3 * step, most=7 * step)
    seed = secrets.token_bytes(32)
    values = {
        draw(seed=seed, identity=identity(attempt=attempt), items=[offered]).result.value
        for attempt in range(200)
    }
    assert values == {number * step for number in range(3, 8)}


def test_a_range_of_one_value_gives_that_value() -> None:
    offered = item("CREDITS", least=Decimal(25), most=Decimal(25))
    assert draw(seed=secrets.token_bytes(32), identity=identity(), items=[offered]).result.value == 25


@pytest.mark.parametrize("place", [0, 1, 2])
def test_the_weight_alone_decides(place: int) -> None:
    # All other weights are out of reach of any throw that a test can live to see.
    offered = [item("CREDITS", weight=10**15 if n == place else 1) for n in range(3)]
    seed = secrets.token_bytes(32)
    places = {draw(seed=seed, identity=identity(), items=offered).chosen for _ in range(50)}
    assert places == {place}


def test_everything_that_names_a_draw_changes_it() -> None:
    # 128 equal items of 10^9 values: two draws that agree are the same draw.
    offered = [item("CREDITS", weight=1, least=Decimal(1), most=Decimal(10**9))] * 128
    seed, stub = secrets.token_bytes(32), identity()
    others = [
        replace(stub, profile_address=random_address()),
        replace(stub, day="2027-01-01"),
        replace(stub, attempt=stub.attempt + 1),
        replace(stub, tables=(*stub.tables, (1, 1))),
        replace(stub, tables=((stub.tables[0][0], stub.tables[0][1] + 1),)),
    ]
    draws = [draw(seed=seed, identity=one, items=offered) for one in (stub, *others)]
    draws.append(draw(seed=secrets.token_bytes(32), identity=stub, items=offered))

    assert len({_values(drawn) for drawn in draws}) == len(draws)


def test_items_of_one_draw_are_rolled_independently() -> None:
    # Of 64 independent ones among 10^15 no two are equal, but once in 10^11 runs.
    offered = [item("CREDITS", weight=1, least=Decimal(1), most=Decimal(10**15))] * 64
    drawn = draw(seed=secrets.token_bytes(32), identity=identity(), items=offered)
    assert len(set(_values(drawn))) == 64


def test_a_draw_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="outcomes"):
        draw(seed=secrets.token_bytes(32), identity=identity(), items=[])


def test_an_added_item_does_not_change_what_the_others_roll() -> None:
    seed, stub, offered = secrets.token_bytes(32), identity(), items()
    longer: list[Item] = [*offered, item(random.choice(TYPES))]
    first, second = (
        draw(seed=seed, identity=stub, items=offered),
        draw(seed=seed, identity=stub, items=longer),
    )
    assert second.possible[: len(offered)] == first.possible


def _values(drawn: Draw) -> tuple[Decimal, ...]:
    return tuple(drop.value for drop in drawn.possible)
