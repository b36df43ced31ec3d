"""A process that is killed in the middle of its work."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple
from unittest.mock import patch

import pytest


class ProcessKilled(BaseException):
    """The process is killed: no handler of ours catches this."""


class Point(NamedTuple):
    """A moment of the work: right before or after a function of this module or class."""

    owner: Any
    function: str
    is_after: bool

    def __str__(self) -> str:
        return f"{'after' if self.is_after else 'before'} {self.function.strip('_')}"


def around(owner: Any, function: str) -> list[Point]:
    """Return the points before and after the function."""
    return [Point(owner, function, False), Point(owner, function, True)]


@contextmanager
def killed(point: Point) -> Iterator[None]:
    """Kill the process at this point of the block."""
    real = getattr(point.owner, point.function)

    def die(*args: Any, **options: Any) -> Any:
        if point.is_after:
            real(*args, **options)
        raise ProcessKilled

    with patch.object(point.owner, point.function, die), pytest.raises(ProcessKilled):
        yield
