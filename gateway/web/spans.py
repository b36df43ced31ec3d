"""The steps of a trace, as data: needs no part of OpenTelemetry."""

from dataclasses import dataclass, field
from datetime import datetime

Attributes = dict[str, str | int | bool]


@dataclass
class Span:
    """A step and its duration, in Unix seconds."""

    name: str
    started: float
    ended: float
    attributes: Attributes = field(default_factory=dict)
    failed: bool = False
    children: list["Span"] = field(default_factory=list)


def between(name: str, started: datetime, ended: datetime, **attributes: str | int | bool) -> Span:
    """Return a span between two times from rows."""
    return Span(name, started.timestamp(), ended.timestamp(), attributes)
