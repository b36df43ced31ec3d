"""
The parts of each web process under any server: liveness and readiness, node checks, histograms and traces.

The event loop of `gateway.web.rsgi` responds to the probes itself. Under other servers a middleware does, before the
checks of host and scheme, because orchestrators probe a container by its address over plain http.
"""

import json
from collections.abc import Callable
from typing import Any

import psycopg
from django.db import connection
from django.http import HttpRequest, HttpResponse
from django.urls import get_resolver

from gateway.chain.client import get_chain_client, node_checks
from gateway.common import clock, metrics, sql_functions
from gateway.web import tracing

OK = b'{"status": "ok"}'
DATABASE, _WRITES, _NODES = "database", "database-writes", "nodes"
# A check gets a session at the primary and returns the name of the missing part, or an empty text.
Check = Callable[["psycopg.Connection[Any]"], str]
_checks: list[Check] = []


def register(check: Check) -> Check:
    """Decorator: include this check in `/readyz`."""
    _checks.append(check)
    return check


def start() -> None:
    """Import every view, and start the background threads. Call it once in each process."""
    _ = get_resolver().url_patterns
    sql_functions.log_differing()
    # First, because the age of a node's newest block depends on it.
    clock.start()
    node_checks().start()
    metrics.reporter().start()
    tracing.start()


def ask_database() -> str:
    """
    Return the part that is missing to accept and settle calls, according to the primary; empty if none is.

    Uses a separate session, because those of the pool may all be in use.

    Raises:
        psycopg.Error: the primary does not respond.
    """
    parameters = {**connection.get_connection_params(), "connect_timeout": 1}
    with psycopg.connect(**parameters) as own:
        (read_only,) = own.execute("SELECT current_setting('transaction_read_only')::bool").fetchone() or (
            True,
        )
        return _WRITES if read_only else next(filter(None, (check(own) for check in _checks)), "")


def missing() -> str:
    """Return the part that is missing to accept and settle calls; an empty text if nothing."""
    try:
        found = ask_database()
    except psycopg.Error:
        return DATABASE
    is_any_fit = any(not node.fault for node in get_chain_client().nodes())
    return found or ("" if is_any_fit else _NODES)


def readiness(lacking: str) -> tuple[int, bytes]:
    """Return the status and the body for the missing part."""
    return (503, json.dumps({"status": "unavailable", "missing": lacking}).encode()) if lacking else (200, OK)


def live(request: HttpRequest) -> HttpResponse:
    """Return 200: the process accepts requests."""
    return HttpResponse(OK, content_type="application/json")


def ready(request: HttpRequest) -> HttpResponse:
    """Return 200 if calls can be accepted and are settled, else 503 with the name of the missing part."""
    status, body = readiness(missing())
    return HttpResponse(body, content_type="application/json", status=status)


_PROBES = {"/healthz": live, "/readyz": ready}


def probes(get_response: Callable[[HttpRequest], HttpResponse]) -> Callable[[HttpRequest], HttpResponse]:
    """Middleware: respond to the probes; must come first."""
    return lambda request: _PROBES.get(request.path_info, get_response)(request)
