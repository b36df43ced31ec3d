"""Cards: a figure each, with a link to the rows behind it."""

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
    """Return the address of a model's list, narrowed to some rows."""
    page = reverse(f"admin:{model}_changelist")
    return f"{page}?{urlencode(filters)}" if filters else page


def age_of(moment: datetime, now: datetime) -> str:
    """Return how long ago a moment was, in its largest unit."""
    return in_largest_unit((now - moment).total_seconds())


def in_largest_unit(seconds: float) -> str:
    """Return a length of time in its largest unit, rounded down; less than nothing is nothing."""
    whole = max(0, int(seconds))
    for size, name in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if whole >= size:
            return f"{whole // size} {name}"
    return f"{whole} s"
