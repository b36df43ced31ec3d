"""Pages of things, newest first."""

from collections.abc import Callable, Iterable
from typing import Any

from devstack.stripe.state.things import Thing
from devstack.stripe.wire.refusals import NotFound

_COMPARISONS: dict[str, Callable[[int, int], bool]] = {
    "gt": lambda left, right: left > right,
    "gte": lambda left, right: left >= right,
    "lt": lambda left, right: left < right,
    "lte": lambda left, right: left <= right,
}


def page(things: Iterable[Thing], params: dict[str, Any], url: str) -> Thing:
    """Return the page that `limit`, `starting_after`, `ending_before` and `created` ask for."""
    newest_first = [
        thing for thing in reversed(list(things)) if within(thing["created"], params.get("created"))
    ]
    limit = params.get("limit", 10)
    if "ending_before" in params:
        end = _position(newest_first, params, "ending_before")
        chosen, more = newest_first[max(0, end - limit) : end], end > limit
    else:
        start = _position(newest_first, params, "starting_after") + 1 if "starting_after" in params else 0
        chosen, more = newest_first[start : start + limit], len(newest_first) > start + limit
    return {"object": "list", "data": chosen, "has_more": more, "url": url}


def whole_list(things: list[Thing], url: str) -> Thing:
    """Return a list that holds everything."""
    return {"object": "list", "data": things, "has_more": False, "url": url}


def within(moment: int, wanted: int | dict[str, int] | None) -> bool:
    """Say whether the moment is the wanted one, or between the wanted ones."""
    if wanted is None:
        return True
    if isinstance(wanted, int):
        return moment == wanted
    return all(_COMPARISONS[name](moment, bound) for name, bound in wanted.items())


def _position(things: list[Thing], params: dict[str, Any], cursor: str) -> int:
    for position, thing in enumerate(things):
        if thing["id"] == params[cursor]:
            return position
    noun = things[0]["object"] if things else "object"
    raise NotFound(noun, params[cursor], param=cursor, status=400)
