"""
The parts of each web process under any server: liveness and readiness, node checks, histograms and traces.

The event loop of `gateway.web.rsgi` answers the probes itself. Under other servers a middleware does, before the checks
of host and scheme, because orchestrators probe a container by its address over plain http.
"""

from collections.abc import Callable

import psycopg
from django.db import connection
from django.http import HttpRequest, HttpResponse
from django.urls import get_resolver

from gateway.chain.client import node_checks
from gateway.common import metrics, sql_functions, tracing

OK = b'{"status": "ok"}'
NO_DATABASE = b'{"status": "unavailable", "missing": "database"}'


def start() -> None:
    """Import every view, and start the background threads. Call it once in each process."""
    _ = get_resolver().url_patterns
    sql_functions.log_differing()
    node_checks().start()
    metrics.reporter().start()
    tracing.start()


def ask_database() -> None:
    """
    Query the primary on a separate connection, because those of the pool may all be in use.

    Raises:
        psycopg.Error: the primary does not answer.
    """
    parameters = {**connection.get_connection_params(), "connect_timeout": 1}
    with psycopg.connect(**parameters) as own:
        own.execute("SELECT 1")


def live(request: HttpRequest) -> HttpResponse:
    """Answer 200: the process accepts requests."""
    return HttpResponse(OK, content_type="application/json")


def ready(request: HttpRequest) -> HttpResponse:
    """Answer 200 if PostgreSQL answers, else 503. Endpoints that need Redis or a node report that themselves."""
    try:
        ask_database()
    except psycopg.Error:
        return HttpResponse(NO_DATABASE, content_type="application/json", status=503)
    return live(request)


_PROBES = {"/healthz": live, "/readyz": ready}


def probes(get_response: Callable[[HttpRequest], HttpResponse]) -> Callable[[HttpRequest], HttpResponse]:
    """Middleware: answer the probes; must come first."""
    return lambda request: _PROBES.get(request.path_info, get_response)(request)
