"""Cards, a figure each with a link to its rows, and charts."""

import json
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


@dataclass(frozen=True, slots=True)
class Chart:
    """
    Values over time: `data` is what the browser draws with the theme's charting library, as JSON.

    `rows` says the same as a table, a label and a number for each of the `series`; `summary` in one sentence.
    """

    kind: str
    series: list[str]
    rows: list[tuple[str, list[int]]]
    summary: str
    data: str


def columns(parts: Sequence[tuple[str, dict[str, int]]], series: Sequence[str]) -> Chart | None:
    """Return a chart of labelled columns, each a stack of the series; nothing where all are empty."""
    rows = [(label, [amounts.get(name, 0) for name in series]) for label, amounts in parts]
    label, most = max(
        ((label, sum(values)) for label, values in rows), key=lambda row: row[1], default=("", 0)
    )
    return _chart("bar", series, rows, f"At most {most:,}, at {label}.") if most else None


def line(points: Sequence[tuple[str, int]], name: str) -> Chart | None:
    """Return a line through at least two labelled values, oldest first."""
    if len(points) < 2:
        return None
    values = [value for _, value in points]
    summary = f"From {values[0]:,} to {values[-1]:,}; between {min(values):,} and {max(values):,}."
    return _chart("line", [name], [(label, [value]) for label, value in points], summary)


def _chart(kind: str, series: Sequence[str], rows: list[tuple[str, list[int]]], summary: str) -> Chart:
    data = {
        "labels": [label for label, _ in rows],
        "series": {name: [values[place] for _, values in rows] for place, name in enumerate(series)},
    }
    return Chart(kind=kind, series=list(series), rows=rows, summary=summary, data=json.dumps(data))


def shares(parts: dict[str, int]) -> list[tuple[str, int, float]]:
    """Return name, amount and percentage of the largest, for bars that lie."""
    largest = max(parts.values(), default=0)
    return [(name, amount, round(100 * amount / largest, 2)) for name, amount in parts.items() if largest]
