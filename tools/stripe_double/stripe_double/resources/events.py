"""Events of the last thirty days (read-only)."""

from typing import Any

from stripe_double.account import Account, find
from stripe_double.errors import InvalidRequest, ResourceMissing
from stripe_double.events import undelivered, with_pending_webhooks
from stripe_double.parameters import PAGE, Array, Boolean, String, takes
from stripe_double.routing import Route, paginate
from stripe_double.store import Resource

_PATH = "/v1/events"
_KEPT_SECONDS = 30 * 86_400


def retrieve(account: Account, _params: dict[str, Any], identifier: str) -> Resource:
    """Return an event with its number of pending webhooks."""
    event = find(account, "event", identifier)
    if event["created"] < account.now - _KEPT_SECONDS:
        raise ResourceMissing("event", identifier)
    return with_pending_webhooks(account, event)


def list_all(account: Account, params: dict[str, Any]) -> Resource:
    """Return a page of events, optionally by type and delivery success."""
    if "type" in params and "types" in params:
        message = "You may only specify one of these parameters: type, types."
        raise InvalidRequest(message, param="types")
    oldest = account.now - _KEPT_SECONDS
    events = [event for event in account.store.all("event") if event["created"] >= oldest]
    types = params.get("types") or ([params["type"]] if "type" in params else None)
    if types is not None:
        events = [event for event in events if _matches(event["type"], types)]
    if "delivery_success" in params:
        failed = {delivery["event"] for delivery in undelivered(account)}
        events = [event for event in events if (event["id"] not in failed) == params["delivery_success"]]
    page = paginate(events, params, _PATH)
    page["data"] = [with_pending_webhooks(account, event) for event in page["data"]]
    return page


def _matches(type: str, patterns: list[str]) -> bool:
    return any(
        type == pattern or (pattern.endswith(".*") and type.startswith(pattern[:-1])) for pattern in patterns
    )


_LIST = takes(**PAGE, delivery_success=Boolean(), type=String(), types=Array(String(), max_items=20))
ROUTES = (
    Route("GET", _PATH, list_all, _LIST),
    Route("GET", f"{_PATH}/{{id}}", retrieve, takes()),
)
