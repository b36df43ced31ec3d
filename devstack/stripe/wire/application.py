"""The way of one API request: who asks, what for, once only, and how it is answered."""

import secrets
import time
from typing import Any

from devstack.stripe.state.account import API_VERSION, Account, Serving, request_id
from devstack.stripe.state.things import Thing
from devstack.stripe.wire.exchange import Request, Response
from devstack.stripe.wire.expansion import render
from devstack.stripe.wire.faults import Fault, Faults, error_response, failure
from devstack.stripe.wire.idempotency import Answers
from devstack.stripe.wire.keys import publishable
from devstack.stripe.wire.refusals import Invalid, Refused
from devstack.stripe.wire.request_log import RequestLog
from devstack.stripe.wire.routes import Route, Routes


class Application:
    """Answers requests under `/v1` for the holder of the secret key."""

    def __init__(
        self, account: Account, routes: Routes, secret_key: str, *, faults: Faults, log: RequestLog
    ) -> None:
        self._account = account
        self._routes = routes
        self._secret_key = secret_key
        self._publishable_key = publishable(secret_key)
        self._faults = faults
        self._log = log
        self._answers = Answers(account)

    def answer(self, request: Request) -> Response:
        """Return the answer; every one carries a request id of its own."""
        identifier = request_id()
        entry = self._log.begin(request, identifier)
        try:
            route, ids = self._route(request)
            with self._answers.running(request.idempotency_key):
                response = self._once(request, route, ids, identifier)
        except Refused as refused:
            response = Response(refused.status, {"error": self._error(refused, identifier)})
        self._log.end(entry, response)
        return self._signed(response, request, identifier)

    def _route(self, request: Request) -> tuple[Route, tuple[str, ...]]:
        found = self._routes.find(request.method, request.path)
        self._authorize(request, publishable_too=found is not None and found[0].publishable)
        version = request.headers.get("stripe-version", API_VERSION)
        if version != API_VERSION:
            raise Invalid(f"Invalid Stripe API version: {version}. This double speaks {API_VERSION}.")
        if found is None:
            message = f"Unrecognized request URL ({request.method}: {request.path})."
            raise Invalid(message, status=404)
        return found

    def _authorize(self, request: Request, *, publishable_too: bool) -> None:
        if not request.key:
            raise Invalid("You did not provide an API key.", status=401)
        if publishable_too and secrets.compare_digest(request.key, self._publishable_key):
            if "client_secret" not in request.form:
                raise Invalid(
                    "A publishable key needs the client_secret.", code="secret_key_required", status=401
                )
        elif not secrets.compare_digest(request.key, self._secret_key):
            raise Invalid(f"Invalid API Key provided: {request.key[:8]}****", status=401)

    def _once(self, request: Request, route: Route, ids: tuple[str, ...], identifier: str) -> Response:
        slow = self._faults.use("slow", request)
        time.sleep(slow.seconds if slow else 0)
        with self._account.store.lock:
            known = self._answers.known(request)
        if known is not None:
            return known
        fault = self._faults.use("fail", request)
        if fault is not None:
            return self._failed(request, fault, identifier)
        params = route.parameters.read(request.form)
        late = self._faults.use("error_after_commit", request)
        response = self._work(request, route, ids, params, identifier, late)
        cut = self._faults.use("timeout_after_commit", request)
        if cut is not None:
            time.sleep(cut.seconds)
            return Response(0, None, broken_off=True)
        return error_response(late.status) if late else response

    def _failed(self, request: Request, fault: Fault, identifier: str) -> Response:
        if fault.saved:
            with self._account.unit():
                self._answers.keep(request, error_response(fault.status), identifier)
        raise failure(fault.status)

    def _work(
        self,
        request: Request,
        route: Route,
        ids: tuple[str, ...],
        params: dict[str, Any],
        identifier: str,
        late: Fault | None,
    ) -> Response:
        account = self._account
        try:
            with account.unit(Serving(identifier, request.idempotency_key)):
                body = render(account, route.handler(account, params, *ids), params.get("expand", []))
                response = Response(200, body)
                self._keep(request, response, identifier, late)
        except Refused as refused:
            response = Response(refused.status, {"error": self._error(refused, identifier)})
            with account.unit():
                self._keep(request, response, identifier, late)
        return response

    def _keep(self, request: Request, response: Response, identifier: str, late: Fault | None) -> None:
        kept = error_response(late.status) if late and late.saved else response
        self._answers.keep(request, kept, identifier)

    def _error(self, refused: Refused, identifier: str) -> Thing:
        return {**refused.error, "request_log_url": f"{self._account.address}/_control/requests#{identifier}"}

    def _signed(self, response: Response, request: Request, identifier: str) -> Response:
        headers = {"Request-Id": identifier, "Stripe-Version": API_VERSION, **response.headers}
        if request.idempotency_key:
            headers["Idempotency-Key"] = request.idempotency_key
        return Response(response.status, response.body, headers, response.broken_off)
