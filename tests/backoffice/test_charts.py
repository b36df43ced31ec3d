"""The geometry of charts."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from backoffice import cards

_AMOUNTS = st.integers(min_value=0, max_value=10**9)


@given(st.lists(st.tuples(_AMOUNTS, _AMOUNTS), min_size=1, max_size=40))
def test_bars_stay_within_the_chart_and_stand_on_one_another(columns: list[tuple[int, int]]) -> None:
    named = [(str(place), {"a": a, "b": b}) for place, (a, b) in enumerate(columns)]
    bars = cards.stacked_bars(named)
    tallest = max(a + b for a, b in columns)
    assert len(bars) == (sum(bool(part) for column in columns for part in column) if tallest else 0)
    for bar in bars:
        assert 0 <= bar.x <= bar.x + bar.width <= cards.WIDTH + 0.01
        assert -0.01 <= bar.y <= bar.y + bar.height <= cards.HEIGHT + 0.02
    for place, (a, b) in enumerate(columns):
        heights = {bar.series: bar.height for bar in bars if bar.label.startswith(f"{place}:")}
        for series, amount in (("a", a), ("b", b)):
            if amount:
                assert abs(heights[series] - cards.HEIGHT * amount / tallest) <= 0.01


@given(st.lists(st.integers(min_value=-(10**9), max_value=10**9), max_size=60))
def test_a_line_goes_from_left_to_right_with_zero_in_sight(values: list[int]) -> None:
    drawn = cards.line(values)
    if len(values) < 2:
        assert drawn is None
        return
    assert drawn is not None
    points = [tuple(map(float, point.split(","))) for point in drawn.points.split()]
    assert [round(x, 1) for x, _ in points] == sorted(round(x, 1) for x, _ in points)
    assert (points[0][0], points[-1][0]) == (0, cards.WIDTH)
    assert all(0 <= y <= cards.HEIGHT for _, y in points)
    assert 0 <= drawn.zero <= cards.HEIGHT
    for (before, after), ((_, y), (_, next_y)) in zip(pairwise(values), pairwise(points), strict=True):
        assert (next_y <= y) if after > before else (next_y >= y)


def test_shares_are_of_the_largest() -> None:
    assert cards.shares({"a": 200, "b": 50}) == [("a", 200, 100), ("b", 50, 25)]
    assert cards.shares({}) == []
