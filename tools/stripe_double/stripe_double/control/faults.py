"""Controls of webhooks and requests: read, fault, replay."""

import random
from typing import Any

from stripe_double.control.context import Body, Context, Control, Controls, find_in_body, required
from stripe_double.errors import InvalidParameters
from stripe_double.events import queue_delivery, record_event, set_endpoint
from stripe_double.faults import Fault, FaultKind
from stripe_double.store import Resource, new_id
from stripe_double.webhooks import CORRUPTIONS, FaultAction, add_delivery_fault, clear_delivery_faults

_STATES = {"pending": "_delivery", "delivered": "_delivered", "given_up": "_given_up"}


def list_deliveries(context: Context, body: Body) -> Any:
    """Return the deliveries in a state: pending (held ones too), delivered or given_up."""
    deliveries = context.account.store.all(_STATES[str(body.get("state", "pending"))])
    return {"deliveries": [{name: item[name] for name in item if name != "object"} for item in deliveries]}


def set_webhook_endpoint(context: Context, body: Body) -> Any:
    """Set the endpoint of all events and its secret; without a URL, disable it."""
    with context.account.transaction():
        set_endpoint(context.account, body.get("url"), required(body, "secret"))
    return {}


def duplicate(context: Context, body: Body) -> Any:
    """Send the next webhooks several times."""
    return _add_delivery_fault(context, body, "duplicate", times=int(body.get("times", 1)))


def drop(context: Context, body: Body) -> Any:
    """Drop the next webhooks and record them as `reported_as`: `failed` or `delivered`."""
    return _add_delivery_fault(context, body, "drop", reported_as=body.get("reported_as", "failed"))


def delay(context: Context, body: Body) -> Any:
    """Delay the next webhooks by this many seconds."""
    return _add_delivery_fault(context, body, "delay", seconds=int(required(body, "seconds")))


def corrupt(context: Context, body: Body) -> Any:
    """Corrupt the signature or the signed content of the next webhooks."""
    how = body.get("how", "signature")
    if how not in CORRUPTIONS:
        raise InvalidParameters(f"how must be one of {', '.join(CORRUPTIONS)}", param="how")
    return _add_delivery_fault(context, body, "corrupt", how=how)


def hold(context: Context, body: Body) -> Any:
    """Hold webhooks until they are released."""
    return _add_delivery_fault(context, {"count": None, **body}, "hold")


def release(context: Context, body: Body) -> Any:
    """Send the held webhooks: in order, `reversed`, `shuffled`, or by event ids."""
    account = context.account
    with account.transaction():
        clear_delivery_faults(account, "hold")
        held = [delivery for delivery in account.store.all("_delivery") if delivery["held"]]
        for delivery in _ordered(held, body):
            account.store.remove("_delivery", delivery["id"])
            account.add({**delivery, "held": False, "due_at": account.now})
    account.wakeup.set()
    return {"released": len(held)}


def clear_webhook_faults(context: Context, _body: Body) -> Any:
    """Remove all faults of webhooks; held ones stay held."""
    with context.account.transaction():
        clear_delivery_faults(context.account)
    return {}


def replay(context: Context, body: Body) -> Any:
    """Send past events again, optionally only some types or ids."""
    account = context.account
    types, ids = body.get("types"), body.get("events")
    with account.transaction():
        events = [
            event
            for event in account.store.all("event")
            if (types is None or event["type"] in types) and (ids is None or event["id"] in ids)
        ]
        for event in _ordered(events, body):
            queue_delivery(account, event)
    account.wakeup.set()
    return {"replayed": len(events)}


def reissue(context: Context, body: Body) -> Any:
    """Emit the same event under a new id."""
    with context.account.transaction():
        event = find_in_body(context, "event", body)
        copy = {**event, "id": new_id("evt"), "created": context.account.now}
        record_event(context.account, copy)
    context.account.wakeup.set()
    return {"event": copy["id"]}


def list_requests(context: Context, _body: Body) -> Any:
    """Return the log of requests to the API, oldest first."""
    return {"requests": context.log.entries()}


def clear_requests(context: Context, _body: Body) -> Any:
    """Clear the log of requests."""
    context.log.clear()
    return {}


def clear_request_faults(context: Context, _body: Body) -> Any:
    """Remove all faults of requests."""
    context.faults.clear()
    return {}


def _request_fault(kind: FaultKind) -> Control:
    def add(context: Context, body: Body) -> Any:
        fault = Fault(
            kind,
            remaining=body.get("count", 1),
            method=body.get("method"),
            path=body.get("path"),
            status=int(body.get("status", 500)),
            seconds=float(body.get("seconds", 0)),
            code=body.get("code"),
            message=body.get("message"),
            saved=bool(body.get("saved", False)),
        )
        context.faults.add(fault)
        return {}

    return add


def _add_delivery_fault(context: Context, body: Body, action: FaultAction, **options: Any) -> Any:
    types, count = body.get("types"), body.get("count", 1)
    with context.account.transaction():
        fault = add_delivery_fault(context.account, action, types=types, count=count, **options)
    return {"fault": fault["id"]}


def _ordered(resources: list[Resource], body: Body) -> list[Resource]:
    order = body.get("order", "original")
    if order == "reversed":
        return resources[::-1]
    if order == "shuffled":
        return random.Random(body.get("seed")).sample(resources, len(resources))  # noqa: S311 (repeatable)
    if isinstance(order, list):
        positions = {event_id: position for position, event_id in enumerate(order)}
        return sorted(
            resources, key=lambda item: positions.get(str(item.get("event", item["id"])), len(positions))
        )
    return resources


FAULT_CONTROLS: Controls = {
    ("GET", "deliveries"): list_deliveries,
    ("POST", "endpoint"): set_webhook_endpoint,
    ("POST", "deliveries/duplicate"): duplicate,
    ("POST", "deliveries/drop"): drop,
    ("POST", "deliveries/delay"): delay,
    ("POST", "deliveries/corrupt"): corrupt,
    ("POST", "deliveries/hold"): hold,
    ("POST", "deliveries/release"): release,
    ("POST", "deliveries/replay"): replay,
    ("POST", "deliveries/clear_faults"): clear_webhook_faults,
    ("POST", "events/reissue"): reissue,
    ("GET", "requests"): list_requests,
    ("DELETE", "requests"): clear_requests,
    ("POST", "requests/fail"): _request_fault("fail"),
    ("POST", "requests/error_after_commit"): _request_fault("error_after_commit"),
    ("POST", "requests/timeout_after_commit"): _request_fault("timeout_after_commit"),
    ("POST", "requests/slow"): _request_fault("slow"),
    ("POST", "requests/clear_faults"): clear_request_faults,
}
