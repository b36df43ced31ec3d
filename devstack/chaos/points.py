"""
The named points at which a process is killed: a statement or a call that passes a proxy, before it or after it.

`before`: the server has not seen it. `after`: it has been done, and the process was never answered.
"""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import psutil

from devstack.chaos.proxies import Side


@dataclass(frozen=True)
class Point:
    """A moment in the life of one component's work."""

    name: str
    component: str
    server: str
    doing: str
    side: Side
    during: str = ""

    def matches(self, *, doing: str, during: Sequence[str], side: Side) -> bool:
        """Say whether this is the moment; `during` are the statements of the transaction so far."""
        return (
            side is self.side
            and self.doing in doing
            and (not self.during or any(self.during in earlier for earlier in during))
        )


@dataclass
class Killing:
    """A trap that kills the process which comes to a point, once."""

    point: Point
    owner_of: Callable[[int, str], psutil.Process | None]
    sprung: threading.Event = field(default_factory=threading.Event)

    def springs(self, *, doing: str, during: Sequence[str], side: Side, client_port: int) -> bool:
        """Kill the process at the other end, if it is at the point and of the component."""
        if self.sprung.is_set() or not self.point.matches(doing=doing, during=during, side=side):
            return False
        process = self.owner_of(client_port, self.point.component)
        if process is None:
            return False
        process.kill()
        self.sprung.set()
        return True


def _points(action: str, component: str, server: str, *moments: tuple[str, str, str]) -> list[Point]:
    """Return two points for each moment, `(name, what is done, during what)`."""
    return [
        Point(f"{action} {side.value} {name}", component, server, doing, side, during)
        for name, doing, during in moments
        for side in Side
    ]


_ACCEPT = _points(
    "accept",
    "web",
    "postgres",
    ("taking slots", "relay_take_slots", ""),
    ("storing calls", "relay_store_calls", ""),
    ("the commit", "COMMIT", "relay_store_calls"),
)

POINTS = {point.name: point for point in [*_ACCEPT]}
