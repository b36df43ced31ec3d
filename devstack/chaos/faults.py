"""The faults, by name. Each is a context: it has been caused when the block is entered, and is over when it is left."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

from devstack.chaos.points import POINTS, Killing, Point
from devstack.chaos.proxies import Proxy
from devstack.chaos.stack import Stack

_COMES_WITHIN_SECONDS = 30


class NeverCame(RuntimeError):
    """The moment for a fault did not come."""


@dataclass(frozen=True)
class Fault:
    """Something that goes wrong."""

    caused: Callable[[Stack], AbstractContextManager[None]]


def _kill_at(point: Point) -> Fault:
    @contextmanager
    def caused(stack: Stack) -> Iterator[None]:
        proxy: Proxy = getattr(stack.proxies, point.server)
        killing = Killing(point, stack.owner_of)
        proxy.trap = killing
        came = killing.sprung.wait(_COMES_WITHIN_SECONDS)
        proxy.trap = None
        if not came:
            raise NeverCame(f"No process of {point.component} came to the point {point.name}.")
        yield

    return Fault(caused)


FAULTS: dict[str, Fault] = {f"kill {name}": _kill_at(point) for name, point in POINTS.items()}
