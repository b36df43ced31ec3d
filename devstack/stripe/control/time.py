"""Time: forward by seconds or to a moment, with everything that falls due on the way."""

import time
from typing import Any

from devstack.stripe.control.desk import Body, Desk
from devstack.stripe.wire.refusals import Invalid

_PATIENCE = 30.0


def read_clock(desk: Desk, _body: Body) -> Any:
    """Return the account's present second."""
    return {"now": desk.account.now}


def set_clock(desk: Desk, body: Body) -> Any:
    """Set the time of an account in which nothing has happened yet, backwards too."""
    if desk.account.store.all("event"):
        raise Invalid("Time goes back only before anything has happened; reset first.")
    desk.account.clock.run_from(int(body["to"]))
    return {"now": desk.account.now}


def advance(desk: Desk, body: Body) -> Any:
    """Let time pass; return when all that fell due is done and every due delivery was tried."""
    target = int(body["to"]) if "to" in body else desk.account.now + int(body["seconds"])
    if target < desk.account.now:
        raise Invalid(f"Time does not go back: {target} is before {desk.account.now}.")
    desk.runner.advance_to(target)
    return {"now": desk.account.now}


def settle(desk: Desk, body: Body) -> Any:
    """Return once no delivery is due; how many wait for later or are held is in the answer."""
    deadline = time.monotonic() + float(body.get("timeout", _PATIENCE))
    while _due(desk):
        desk.runner.catch_up()
        if time.monotonic() > deadline:
            raise Invalid("Deliveries are still due.", status=409)
    return {"waiting": len(desk.account.store.all("_delivery"))}


def _due(desk: Desk) -> bool:
    now = desk.account.now
    return any(item["due_at"] <= now and not item["held"] for item in desk.account.store.all("_delivery"))


CONTROLS = {
    ("GET", "clock"): read_clock,
    ("POST", "clock"): set_clock,
    ("POST", "advance"): advance,
    ("POST", "settle"): settle,
}
