"""The API under `/v1`: authorization, idempotency, the operation, the request log."""

import secrets
import threading
import time
from collections.abc import Sequence

from stripe_double.account import API_VERSION, Account, RequestInfo, publishable_key
from stripe_double.errors import InvalidParameters, InvalidRequest, StripeError, injected_error, server_error
from stripe_double.expansion import render
from stripe_double.faults import Fault, Faults
from stripe_double.http import Request, Response, error_response
from stripe_double.idempotency import IdempotentResponses
from stripe_double.routing import Route, find_route
from stripe_double.store import Resource, new_id

_MAX_LOG_ENTRIES = 20_000


class RequestLog:
    """The requests since the start or since the log was cleared, oldest first."""

    def __init__(self) -> None:
        self._entries: list[Resource] = []
        self._lock = threading.Lock()

    def begin(self, request: Request, request_id: str) -> Resource:
        """Log the request."""
        entry: Resource = {
            "id": request_id,
            "method": request.method,
            "path": request.path,
            "params": _params(request),
            "idempotency_key": request.headers.get("idempotency-key"),
            "status": None,
            "replayed": False,
        }
        with self._lock:
            self._entries.append(entry)
            del self._entries[:-_MAX_LOG_ENTRIES]
        return entry

    def end(self, entry: Resource, response: Response) -> None:
        """Log the response; a dropped connection has status 0."""
        entry["status"] = response.status
        entry["replayed"] = "Idempotent-Replayed" in response.headers

    def entries(self) -> list[Resource]:
        """Return the log."""
        with self._lock:
            return list(self._entries)

    def clear(self) -> None:
        """Forget the log."""
        with self._lock:
            self._entries.clear()


def _params(request: Request) -> Resource:
    try:
        return request.form
    except InvalidParameters:
        return {}


class Api:
    """Responds to requests under `/v1` that carry the secret key."""

    def __init__(
        self, account: Account, routes: Sequence[Route], secret_key: str, *, faults: Faults, log: RequestLog
    ) -> None:
        self._account = account
        self._routes = routes
        self._secret_key = secret_key
        self._publishable_key = publishable_key(secret_key)
        self._faults = faults
        self._log = log
        self._responses = IdempotentResponses(account)

    def handle(self, request: Request) -> Response:
        """Return the response, with its own request id."""
        request_id = new_id("req", 14)
        entry = self._log.begin(request, request_id)
        try:
            route, ids = self._route(request)
            with self._responses.running(request.idempotency_key):
                response = self._run_once(request, route, ids, request_id)
        except StripeError as error:
            response = self._error_response(error, request_id)
        self._log.end(entry, response)
        headers = {"Request-Id": request_id, "Stripe-Version": API_VERSION, **response.headers}
        if request.idempotency_key:
            headers["Idempotency-Key"] = request.idempotency_key
        return Response(response.status, response.body, headers, response.drop_connection)

    def _route(self, request: Request) -> tuple[Route, tuple[str, ...]]:
        route = find_route(self._routes, request.method, request.path)
        self._authorize(request, publishable=route is not None and route[0].allows_publishable_key)
        version = request.headers.get("stripe-version", API_VERSION)
        if version != API_VERSION:
            raise InvalidRequest(f"Invalid Stripe API version: {version}. This double speaks {API_VERSION}.")
        if route is None:
            message = f"Unrecognized request URL ({request.method}: {request.path})."
            raise InvalidRequest(message, status=404)
        return route

    def _authorize(self, request: Request, *, publishable: bool) -> None:
        if not request.api_key:
            raise InvalidRequest("You did not provide an API key.", status=401)
        if publishable and secrets.compare_digest(request.api_key, self._publishable_key):
            if "client_secret" not in request.form:
                message = "A publishable key needs the client_secret."
                raise InvalidRequest(message, code="secret_key_required", status=401)
        elif not secrets.compare_digest(request.api_key, self._secret_key):
            raise InvalidRequest(f"Invalid API Key provided: {request.api_key[:8]}****", status=401)

    def _run_once(self, request: Request, route: Route, ids: tuple[str, ...], request_id: str) -> Response:
        slow = self._faults.use("slow", request)
        time.sleep(slow.seconds if slow else 0)
        with self._account.store.lock:
            first = self._responses.find(request)
        if first is not None:
            return first
        failure = self._faults.use("fail", request)
        if failure is not None:
            return self._fail(request, failure, request_id)
        params = route.parameters.read(request.form)
        hidden = self._faults.use("error_after_commit", request)
        response = self._run(request, route, ids, params, request_id, hidden)
        timeout = self._faults.use("timeout_after_commit", request)
        if timeout is not None:
            time.sleep(timeout.seconds)
            return Response(0, None, drop_connection=True)
        return error_response(server_error(hidden.status)) if hidden else response

    def _fail(self, request: Request, fault: Fault, request_id: str) -> Response:
        error = injected_error(fault.status, fault.code, fault.message)
        if fault.saved:
            with self._account.transaction():
                self._responses.save(request, error_response(error), request_id)
        raise error

    def _run(
        self,
        request: Request,
        route: Route,
        ids: tuple[str, ...],
        params: Resource,
        request_id: str,
        hidden: Fault | None,
    ) -> Response:
        account = self._account
        try:
            with account.transaction(RequestInfo(request_id, request.idempotency_key)):
                body = render(account, route.handler(account, params, *ids), params.get("expand", []))
                response = Response(200, body)
                self._save(request, response, request_id, hidden)
        except StripeError as error:
            response = self._error_response(error, request_id)
            with account.transaction():
                self._save(request, response, request_id, hidden)
        return response

    def _save(self, request: Request, response: Response, request_id: str, hidden: Fault | None) -> None:
        if hidden and hidden.saved:
            response = error_response(server_error(hidden.status))
        self._responses.save(request, response, request_id)

    def _error_response(self, error: StripeError, request_id: str) -> Response:
        log_url = f"{self._account.url}/_control/requests#{request_id}"
        return Response(error.status, {"error": {**error.error, "request_log_url": log_url}})
