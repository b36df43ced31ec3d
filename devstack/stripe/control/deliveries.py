"""Deliveries: seeing them, disturbing them, repeating them."""

import random
from typing import Any

from devstack.stripe.control.desk import Body, Desk, needed, wanted
from devstack.stripe.events.endpoints import configure
from devstack.stripe.events.rules import Action, add_rule, forget_rules
from devstack.stripe.events.signing import WRONGS
from devstack.stripe.events.telling import queue_delivery, record_event
from devstack.stripe.state.things import Thing, new_id
from devstack.stripe.wire.refusals import Malformed

_STATES = {"pending": "_delivery", "delivered": "_delivered", "given_up": "_given_up"}


def list_deliveries(desk: Desk, body: Body) -> Any:
    """Return the deliveries in a state: pending (held ones too), delivered or given_up."""
    found = desk.account.store.all(_STATES[str(body.get("state", "pending"))])
    return {
        "deliveries": [{name: value for name, value in item.items() if name != "object"} for item in found]
    }


def point(desk: Desk, body: Body) -> Any:
    """Send every event to a URL, signed with a secret."""
    with desk.account.unit():
        endpoint = configure(desk.account, needed(body, "url"), needed(body, "secret"))
    return {"endpoint": endpoint["id"]}


def duplicate(desk: Desk, body: Body) -> Any:
    """Send the next deliveries several times over."""
    return _rule(desk, body, "duplicate", times=int(body.get("times", 1)))


def drop(desk: Desk, body: Body) -> Any:
    """Lose the next deliveries; Stripe believes them `failed` or, as `reported_as` says, `delivered`."""
    return _rule(desk, body, "drop", reported_as=body.get("reported_as", "failed"))


def delay(desk: Desk, body: Body) -> Any:
    """Let the next deliveries leave this many seconds later."""
    return _rule(desk, body, "delay", seconds=int(needed(body, "seconds")))


def corrupt(desk: Desk, body: Body) -> Any:
    """Spoil the signature of the next deliveries, or what it covers."""
    how = body.get("how", "signature")
    if how not in WRONGS:
        raise Malformed(f"how must be one of {', '.join(WRONGS)}", param="how")
    return _rule(desk, body, "corrupt", how=how)


def hold(desk: Desk, body: Body) -> Any:
    """Keep deliveries back until they are released."""
    return _rule(desk, {"count": None, **body}, "hold")


def release(desk: Desk, body: Body) -> Any:
    """Send what is held: in its order, `reversed`, `shuffled`, or in an order of event ids."""
    with desk.account.unit():
        forget_rules(desk.account, "hold")
        held = [item for item in desk.account.store.all("_delivery") if item["held"]]
        for item in _ordered(held, body.get("order", "original"), body.get("seed")):
            desk.account.store.remove("_delivery", item["id"])
            desk.account.add({**item, "held": False, "due_at": desk.account.now})
    desk.account.told.set()
    return {"released": len(held)}


def behave(desk: Desk, _body: Body) -> Any:
    """Disturb no delivery any more; what is held stays held."""
    with desk.account.unit():
        forget_rules(desk.account)
    return {}


def replay(desk: Desk, body: Body) -> Any:
    """Deliver past events once more, all of them or only some types or ids."""
    account = desk.account
    with account.unit():
        events = [event for event in account.store.all("event") if _chosen(event, body)]
        for event in _ordered(events, body.get("order", "original"), body.get("seed")):
            for endpoint in account.store.all("webhook_endpoint"):
                queue_delivery(account, event, endpoint)
    account.told.set()
    return {"replayed": len(events)}


def reissue(desk: Desk, body: Body) -> Any:
    """Tell the same event again under a new id."""
    with desk.account.unit():
        copy = {**wanted(desk, "event", body), "id": new_id("evt"), "created": desk.account.now}
        record_event(desk.account, copy)
    desk.account.told.set()
    return {"event": copy["id"]}


def _rule(desk: Desk, body: Body, action: Action, **options: Any) -> Any:
    with desk.account.unit():
        rule = add_rule(desk.account, action, types=body.get("types"), count=body.get("count", 1), **options)
    return {"rule": rule["id"]}


def _chosen(event: Thing, body: Body) -> bool:
    types, ids = body.get("types"), body.get("events")
    return (types is None or event["type"] in types) and (ids is None or event["id"] in ids)


def _ordered(things: list[Thing], order: str | list[str], seed: Any) -> list[Thing]:
    if order == "reversed":
        return things[::-1]
    if order == "shuffled":
        return random.Random(seed).sample(things, len(things))  # noqa: S311 (a repeatable disorder)
    if isinstance(order, list):
        places = {identifier: place for place, identifier in enumerate(order)}
        return sorted(things, key=lambda thing: places.get(str(thing.get("event", thing["id"])), len(places)))
    return things


CONTROLS = {
    ("GET", "deliveries"): list_deliveries,
    ("POST", "endpoint"): point,
    ("POST", "deliveries/duplicate"): duplicate,
    ("POST", "deliveries/drop"): drop,
    ("POST", "deliveries/delay"): delay,
    ("POST", "deliveries/corrupt"): corrupt,
    ("POST", "deliveries/hold"): hold,
    ("POST", "deliveries/release"): release,
    ("POST", "deliveries/behave"): behave,
    ("POST", "deliveries/replay"): replay,
    ("POST", "events/reissue"): reissue,
}
