"""Events of the last thirty days."""

from typing import Any

from devstack.stripe.events.telling import shown, undelivered
from devstack.stripe.state.account import Account
from devstack.stripe.state.things import Thing
from devstack.stripe.wire.finding import find
from devstack.stripe.wire.lists import page
from devstack.stripe.wire.parameters import PAGE, takes
from devstack.stripe.wire.refusals import Invalid, NotFound
from devstack.stripe.wire.routes import Route
from devstack.stripe.wire.shapes import Flag, Several, Text

_PATH = "/v1/events"
_KEPT_SECONDS = 30 * 86_400


def retrieve(account: Account, _params: dict[str, Any], identifier: str) -> Thing:
    """Return an event with the number of endpoints that still wait for it."""
    event = find(account, "event", identifier)
    if event["created"] < account.now - _KEPT_SECONDS:
        raise NotFound("event", identifier)
    return shown(account, event)


def list_all(account: Account, params: dict[str, Any]) -> Thing:
    """Return a page of events, also by type and by whether every endpoint took them."""
    oldest = account.now - _KEPT_SECONDS
    found = [item for item in account.store.all("event") if item["created"] >= oldest]
    if "type" in params and "types" in params:
        raise Invalid("You may only specify one of these parameters: type, types.", param="types")
    wanted = params.get("types") or ([params["type"]] if "type" in params else None)
    if wanted is not None:
        found = [item for item in found if _matches(item["type"], wanted)]
    if "delivery_success" in params:
        missing = {item["event"] for item in undelivered(account)}
        found = [item for item in found if (item["id"] not in missing) == params["delivery_success"]]
    listed = page(found, params, _PATH)
    listed["data"] = [shown(account, event) for event in listed["data"]]
    return listed


def _matches(type: str, wanted: list[str]) -> bool:
    return any(type == word or (word.endswith(".*") and type.startswith(word[:-1])) for word in wanted)


ROUTES = (
    Route(
        "GET",
        _PATH,
        list_all,
        takes(**PAGE, delivery_success=Flag(), type=Text(), types=Several(Text(), most=20)),
    ),
    Route("GET", f"{_PATH}/{{id}}", retrieve, takes()),
)
