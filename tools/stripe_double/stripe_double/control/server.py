"""The control API's server, and its controls of time."""

import json
import secrets
import time
from typing import Any

from stripe_double.control.context import Body, Context, Controls
from stripe_double.control.dashboard import DASHBOARD_CONTROLS
from stripe_double.control.faults import FAULT_CONTROLS
from stripe_double.errors import InvalidRequest, StripeError
from stripe_double.http import Request, Response, error_response

PREFIX = "/_control/"
_SETTLE_SECONDS = 30.0


class ControlServer:
    """Responds to JSON requests under `/_control` that carry the secret key."""

    def __init__(self, context: Context, secret_key: str) -> None:
        self._context = context
        self._secret_key = secret_key

    def handle(self, request: Request) -> Response:
        """Run the control that the request names."""
        try:
            return Response(200, self._run(request))
        except StripeError as error:
            return error_response(error)
        except (ValueError, TypeError, KeyError) as error:
            return error_response(InvalidRequest(repr(error)))

    def _run(self, request: Request) -> Any:
        if not secrets.compare_digest(request.api_key, self._secret_key):
            raise InvalidRequest("The control API needs the secret key.", status=401)
        name = (request.method, request.path.removeprefix(PREFIX))
        body: Body = {**request.query_params, **json.loads(request.body or b"{}")}
        if name in DASHBOARD_CONTROLS:
            with self._context.account.transaction():
                return DASHBOARD_CONTROLS[name](self._context, body)
        control = _TIME_CONTROLS.get(name) or FAULT_CONTROLS.get(name)
        if control is None:
            raise InvalidRequest(f"No such control: {request.method} {request.path}", status=404)
        return control(self._context, body)


def get_clock(context: Context, _body: Body) -> Any:
    """Return the account's current second."""
    return {"now": context.account.now}


def set_clock(context: Context, body: Body) -> Any:
    """Set the time of an account without events, also backwards."""
    if context.account.store.all("event"):
        raise InvalidRequest("The time can be moved back only before the first event; reset first.")
    context.account.clock.move_to(int(body["to"]))
    return {"now": context.account.now}


def advance(context: Context, body: Body) -> Any:
    """Advance the time; return after everything due is done and every due webhook was tried."""
    target = int(body["to"]) if "to" in body else context.account.now + int(body["seconds"])
    if target < context.account.now:
        raise InvalidRequest(f"The time cannot be moved back: {target} is before {context.account.now}.")
    context.scheduler.advance_to(target)
    return {"now": context.account.now}


def settle(context: Context, body: Body) -> Any:
    """Wait until no webhook is due; return the number of later or held ones."""
    deadline = time.monotonic() + float(body.get("timeout", _SETTLE_SECONDS))
    store = context.account.store
    while any(
        delivery["due_at"] <= context.account.now and not delivery["held"]
        for delivery in store.all("_delivery")
    ):
        context.scheduler.run_due()
        if time.monotonic() > deadline:
            raise InvalidRequest("Webhooks are still due.", status=409)
    return {"waiting": len(store.all("_delivery"))}


def reset(context: Context, _body: Body) -> Any:
    """Remove everything but the webhook endpoint, and reset the clock."""
    store = context.account.store
    with store.transaction():
        endpoints = store.all("_endpoint")
        store.clear()
        for endpoint in endpoints:
            store.add(endpoint)
    context.faults.clear()
    context.log.clear()
    return {}


_TIME_CONTROLS: Controls = {
    ("GET", "clock"): get_clock,
    ("POST", "clock"): set_clock,
    ("POST", "advance"): advance,
    ("POST", "settle"): settle,
    ("POST", "reset"): reset,
}
