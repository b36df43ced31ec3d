"""Which function answers which method and path."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from devstack.stripe.wire.parameters import Parameters

Handler = Callable[..., Any]


@dataclass(frozen=True)
class Route:
    """One operation: `handler(account, params, *ids)` with the ids that the path names."""

    method: str
    path: str
    handler: Handler
    parameters: Parameters
    publishable: bool = False

    def ids(self, method: str, path: str) -> tuple[str, ...] | None:
        """Return the ids in the path; None when this is another operation's request."""
        if method != self.method:
            return None
        found = re.fullmatch(re.sub(r"\{\w+\}", r"([^/]+)", self.path), path)
        return found.groups() if found else None


class Routes:
    """All operations."""

    def __init__(self, routes: Sequence[Route]) -> None:
        self.all = tuple(routes)

    def find(self, method: str, path: str) -> tuple[Route, tuple[str, ...]] | None:
        """Return the operation of the request and the ids in its path."""
        for route in self.all:
            ids = route.ids(method, path)
            if ids is not None:
                return route, ids
        return None
