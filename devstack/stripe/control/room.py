"""The way of one request to the controls."""

import json
import secrets
from typing import Any

from devstack.stripe.control import banks, deliveries, invoices, people, requests, time
from devstack.stripe.control.desk import Body, Control, Desk
from devstack.stripe.wire.exchange import Request, Response
from devstack.stripe.wire.refusals import Invalid, Refused

PREFIX = "/_control/"
_OUTSIDE_UNITS: dict[tuple[str, str], Control] = {**time.CONTROLS, **deliveries.CONTROLS, **requests.CONTROLS}
_INSIDE_UNITS: dict[tuple[str, str], Control] = {**people.CONTROLS, **invoices.CONTROLS, **banks.CONTROLS}


class ControlRoom:
    """Answers requests under `/_control`, JSON in and out, for the holder of the secret key."""

    def __init__(self, desk: Desk, secret_key: str) -> None:
        self._desk = desk
        self._secret_key = secret_key

    def answer(self, request: Request) -> Response:
        """Do what is asked; a refusal says why."""
        try:
            return Response(200, self._do(request))
        except Refused as refused:
            return Response(refused.status, {"error": refused.error})
        except (ValueError, TypeError, KeyError) as error:
            return Response(400, {"error": {"type": "invalid_request_error", "message": repr(error)}})

    def _do(self, request: Request) -> Any:
        if not secrets.compare_digest(request.key, self._secret_key):
            raise Invalid("The controls need the secret key.", status=401)
        name = (request.method, request.path.removeprefix(PREFIX))
        body: Body = {**request.query_texts, **json.loads(request.body or b"{}")}
        if name == ("POST", "reset"):
            return self._reset()
        if name in _OUTSIDE_UNITS:
            return _OUTSIDE_UNITS[name](self._desk, body)
        if name not in _INSIDE_UNITS:
            raise Invalid(f"No such control: {request.method} {request.path}", status=404)
        with self._desk.account.unit():
            return _INSIDE_UNITS[name](self._desk, body)

    def _reset(self) -> Any:
        store = self._desk.account.store
        with store.unit():
            endpoints = store.all("webhook_endpoint")
            store.clear()
            for endpoint in endpoints:
                store.add(endpoint)
        self._desk.faults.clear()
        self._desk.log.clear()
        return {}
