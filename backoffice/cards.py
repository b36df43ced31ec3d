"""Cards, a figure each with a link to its rows, and the geometry of charts, which templates draw as inline SVG."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import urlencode

from django.urls import reverse


@dataclass(frozen=True, kw_only=True)
class Card:
    """A figure: what it is, what it says, more of it, where its rows are, and whether somebody should act."""

    title: str
    value: str
    detail: str = ""
    link: str = ""
    is_alarming: bool = False


def rows_of(model: str, **filters: str) -> str:
    page = reverse(f"admin:{model}_changelist")
    return f"{page}?{urlencode(filters)}" if filters else page


def age_of(moment: datetime, now: datetime) -> str:
    return in_largest_unit((now - moment).total_seconds())


def in_largest_unit(seconds: float) -> str:
    """Return a length of time in its largest unit, rounded down; less than nothing is nothing."""
    whole = max(0, int(seconds))
    for size, name in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if whole >= size:
            return f"{whole // size} {name}"
    return f"{whole} s"


WIDTH, HEIGHT = 600, 120


@dataclass(frozen=True, slots=True)
class Bar:
    """A part of a column: its rectangle in the chart's units, which series it is of, and what it says."""

    x: float
    y: float
    width: float
    height: float
    series: str
    label: str


def stacked_bars(columns: Sequence[tuple[str, dict[str, int]]]) -> list[Bar]:
    """Return the bars of labelled columns, each a stack of series in the given order, scaled to the tallest."""
    tallest = max((sum(parts.values()) for _, parts in columns), default=0)
    if not tallest:
        return []
    step = WIDTH / len(columns)
    return [
        bar
        for place, (label, parts) in enumerate(columns)
        for bar in _stack(x=place * step, width=step * 0.8, label=label, parts=parts, tallest=tallest)
    ]


def _stack(*, x: float, width: float, label: str, parts: dict[str, int], tallest: int) -> list[Bar]:
    bars, top = [], float(HEIGHT)
    for series, amount in parts.items():
        height = HEIGHT * amount / tallest
        top -= height
        if amount:
            bars.append(Bar(_r(x), _r(top), _r(width), _r(height), series, f"{label}: {amount} {series}"))
    return bars


@dataclass(frozen=True, slots=True)
class Line:
    """A line through values from left to right, and where zero lies."""

    points: str
    zero: float
    least: int
    most: int


def line(values: Sequence[int]) -> Line | None:
    """Return the line of at least two values, oldest first; zero is always within the chart."""
    if len(values) < 2:
        return None
    least, most = min(0, *values), max(0, *values)
    span = (most - least) or 1
    step = WIDTH / (len(values) - 1)

    def height(value: int) -> float:
        return _r(HEIGHT * (most - value) / span)

    points = " ".join(f"{_r(place * step)},{height(value)}" for place, value in enumerate(values))
    return Line(points=points, zero=height(0), least=least, most=most)


def shares(parts: dict[str, int]) -> list[tuple[str, int, float]]:
    """Return name, amount and percentage of the largest, for bars that lie."""
    largest = max(parts.values(), default=0)
    return [(name, amount, _r(100 * amount / largest)) for name, amount in parts.items() if largest]


def _r(value: float) -> float:
    return round(value, 2)
