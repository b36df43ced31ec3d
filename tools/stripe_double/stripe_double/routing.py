"""Routes of the API, routes common to most resources, and pagination."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from stripe_double.account import Account, find
from stripe_double.errors import ResourceMissing
from stripe_double.parameters import PAGE, Parameter, Parameters, takes
from stripe_double.store import Resource

Handler = Callable[..., Any]
Filter = Callable[[Resource, Any], bool]
_COMPARISONS: dict[str, Callable[[int, int], bool]] = {
    "gt": lambda left, right: left > right,
    "gte": lambda left, right: left >= right,
    "lt": lambda left, right: left < right,
    "lte": lambda left, right: left <= right,
}


@dataclass(frozen=True)
class Route:
    """One operation: `handler(account, params, *ids)` with the ids in the path."""

    method: str
    path: str
    handler: Handler
    parameters: Parameters
    allows_publishable_key: bool = False

    def match(self, method: str, path: str) -> tuple[str, ...] | None:
        """Return the ids in the path; None if the request does not match."""
        if method != self.method:
            return None
        match = re.fullmatch(re.sub(r"\{\w+\}", r"([^/]+)", self.path), path)
        return match.groups() if match else None


def find_route(routes: Sequence[Route], method: str, path: str) -> tuple[Route, tuple[str, ...]] | None:
    """Return the route of a request and the ids in its path."""
    for route in routes:
        ids = route.match(method, path)
        if ids is not None:
            return route, ids
    return None


def retrieve_route(path: str, kind: str) -> Route:
    """Return `GET path/{id}`."""

    def retrieve(account: Account, _params: dict[str, Any], identifier: str) -> Resource:
        return find(account, kind, identifier)

    return Route("GET", f"{path}/{{id}}", retrieve, takes())


def list_route(
    path: str, kind: str, *, filters: dict[str, Filter] | None = None, **fields: Parameter
) -> Route:
    """
    Return `GET path`: pages of the kind, filtered by the given fields.

    A field filters by the member of its name, or by its function in `filters`.
    """

    def list_all(account: Account, params: dict[str, Any]) -> Resource:
        resources = account.store.all(kind)
        for name in fields.keys() & params.keys():
            matches = (filters or {}).get(name) or _member_equals(name)
            resources = [resource for resource in resources if matches(resource, params[name])]
        return paginate(resources, params, path)

    return Route("GET", path, list_all, takes(**PAGE, **fields))


def _member_equals(name: str) -> Filter:
    return lambda resource, value: bool(resource[name] == value)


def paginate(resources: Iterable[Resource], params: dict[str, Any], url: str) -> Resource:
    """Return the page for `limit`, `starting_after`, `ending_before` and `created`, newest first."""
    newest_first = [
        resource
        for resource in reversed(list(resources))
        if _is_within(resource.get("created", 0), params.get("created"))
    ]
    limit = params.get("limit", 10)
    if "ending_before" in params:
        end = _position(newest_first, params, "ending_before")
        data, has_more = newest_first[max(0, end - limit) : end], end > limit
    else:
        start = _position(newest_first, params, "starting_after") + 1 if "starting_after" in params else 0
        data, has_more = newest_first[start : start + limit], len(newest_first) > start + limit
    return {"object": "list", "data": data, "has_more": has_more, "url": url}


def _is_within(timestamp: int, limits: int | dict[str, int] | None) -> bool:
    if limits is None:
        return True
    if isinstance(limits, int):
        return timestamp == limits
    return all(_COMPARISONS[name](timestamp, limit) for name, limit in limits.items())


def _position(resources: list[Resource], params: dict[str, Any], cursor: str) -> int:
    for position, resource in enumerate(resources):
        if resource["id"] == params[cursor]:
            return position
    noun = resources[0]["object"] if resources else "object"
    raise ResourceMissing(noun, params[cursor], param=cursor, status=400)
