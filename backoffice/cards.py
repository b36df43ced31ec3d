"""Cards, each a figure with a link to its rows; and charts."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from django.urls import reverse


@dataclass(frozen=True, kw_only=True)
class Card:
    """A figure with its title, value, detail, link to its rows, and whether it needs attention."""

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
    """Return a duration in its largest unit, rounded down; a negative duration is 0."""
    whole = max(0, int(seconds))
    for size, name in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if whole >= size:
            return f"{whole // size} {name}"
    return f"{whole} s"


@dataclass(frozen=True, slots=True)
class Chart:
    """
    Values over time. `data` and `options` are JSON for the theme's chart component (Chart.js).

    `rows` has the same values as a table: a label, and a number for each of the `series`. `summary` is one sentence.
    """

    kind: str
    series: list[str]
    rows: list[tuple[str, list[int]]]
    summary: str
    data: str
    options: str


def columns(parts: Sequence[tuple[str, dict[str, int]]], series: Sequence[str]) -> Chart | None:
    """Return a stacked column chart of the series; None if all columns are empty."""
    rows = [(label, [amounts.get(name, 0) for name in series]) for label, amounts in parts]
    label, most = max(
        ((label, sum(values)) for label, values in rows), key=lambda row: row[1], default=("", 0)
    )
    return _chart("bar", series, rows, f"At most {most:,}, at {label}.") if most else None


def line(points: Sequence[tuple[str, int]], name: str) -> Chart | None:
    """Return a line chart of at least two labelled values, oldest first."""
    if len(points) < 2:
        return None
    values = [value for _, value in points]
    summary = f"From {values[0]:,} to {values[-1]:,}; between {min(values):,} and {max(values):,}."
    return _chart("line", [name], [(label, [value]) for label, value in points], summary)


def _chart(kind: str, series: Sequence[str], rows: list[tuple[str, list[int]]], summary: str) -> Chart:
    datasets = [
        _LOOKS[kind]
        | {"label": name, "data": [values[place] for _, values in rows]}
        | dict.fromkeys(("backgroundColor", "borderColor"), _COLOURS.get(name, "var(--color-primary-500)"))
        for place, name in enumerate(series)
    ]
    data = {"labels": [label for label, _ in rows], "datasets": datasets}
    legend = {"display": len(series) > 1, "align": "end", "labels": {"boxWidth": 12, **_TEXT}}
    options = {**_OPTIONS, "plugins": {"legend": legend}}
    return Chart(kind, list(series), rows, summary, json.dumps(data), json.dumps(options))


_COLOURS = {"unsuccessful": "#dc2626", "waiting": "var(--color-base-400)"}
_LOOKS: dict[str, dict[str, Any]] = {
    "bar": {"stack": "all"},
    "line": {"stepped": True, "borderWidth": 2, "pointRadius": 0, "pointHitRadius": 12},
}
# Legible in the light and the dark theme.
_TEXT = {"color": "#7c8593"}
_OPTIONS: dict[str, Any] = {
    "animation": False,
    "maintainAspectRatio": False,
    "interaction": {"mode": "index", "intersect": False},
    # The theme colours the grid of each axis.
    "scales": {
        "x": {"grid": {"display": False}, "ticks": {"maxRotation": 0, "autoSkipPadding": 24, **_TEXT}},
        "y": {"grid": {}, "beginAtZero": True, "ticks": {"precision": 0, "maxTicksLimit": 6, **_TEXT}},
    },
}


def shares(parts: dict[str, int]) -> list[tuple[str, int, float]]:
    """Return name, amount and percentage of the largest value, for horizontal bars."""
    largest = max(parts.values(), default=0)
    return [(name, amount, round(100 * amount / largest, 2)) for name, amount in parts.items() if largest]
