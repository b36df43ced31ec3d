"""
The parts of each web process under any server: liveness and readiness, node checks, histograms and traces.

The event loop of `gateway.web.rsgi` responds to the probes itself. Under other servers a middleware does, before the
checks of host and scheme, because orchestrators probe a container by its address over plain http.
"""

import json
import math
import time
from collections import deque
from collections.abc import Callable
from typing import cast

from django.conf import settings
from django.db import Error, connection
from django.http import HttpRequest, HttpResponse
from django.urls import get_resolver

from gateway.chain.client import get_chain_client, node_checks
from gateway.chain.remote_signing import remote_signer
from gateway.common import clock, metrics, sql_functions
from gateway.common.db import only_row
from gateway.common.postgresql.base import DatabaseWrapper
from gateway.web import tracing

OK = b'{"status": "ok"}'
THREADS, _DATABASE, _WRITES, _NODES, _SIGNER, _CALLS = (
    "threads",
    "database",
    "database-writes",
    "nodes",
    "signer",
    "calls",
)
# Why a part is missing to accept and settle calls, by its name.
Faults = dict[str, str]
Check = Callable[[], Faults]
_checks: list[Check] = []
# The parts in the order in which `/readyz` names them: a cause comes before its effects.
_PARTS = (THREADS, _DATABASE, _WRITES, _NODES, "quorum", "relay-worker", _SIGNER, "relayers", _CALLS)
_NO_DATABASE: Faults = {_DATABASE: "does not respond"}
# PostgreSQL counts as available for this time after its last response to any thread, also while it is slow.
_SEEN_SECONDS = 5.0
# The share of requests that fail at every node.
_MOST_FAILED = 0.5


def register(check: Check) -> Check:
    """Decorator: include this check in `/readyz`. It reads the database through Django's connection."""
    _checks.append(check)
    return check


class RecentCalls:
    """Whether this process has turned away most of the calls of the last minute because a part was missing."""

    _SECONDS, _FEWEST, _MOST = 60.0, 10, 100

    def __init__(self) -> None:
        self._outcomes: deque[tuple[float, bool]] = deque(maxlen=self._MOST)

    def add(self, *, is_served: bool) -> None:
        self._outcomes.append((time.monotonic(), is_served))

    @property
    def are_turned_away(self) -> bool:
        since = time.monotonic() - self._SECONDS
        served = [is_served for at, is_served in list(self._outcomes) if at > since]
        return len(served) >= self._FEWEST and 2 * sum(served) < len(served)


recent_calls = RecentCalls()


def start() -> None:
    """Import every view, and start the background threads. Call it once in each process."""
    _ = get_resolver().url_patterns
    sql_functions.log_differing()
    # First, because the age of a node's newest block depends on it.
    clock.start()
    for checks in node_checks():
        checks.start()
    metrics.reporter().start()
    tracing.start()


def faults() -> Faults:
    """
    Return what is missing to accept and settle calls.

    It uses the sessions and connections that calls use, because new ones may fail while those respond, or the reverse.
    """
    found: Faults = {}
    try:
        if not _is_writable():
            found[_WRITES] = "PostgreSQL takes no writes"
        for check in _checks:
            found |= check()
    except Error:
        found |= late_faults({})
    finally:
        if not connection.in_atomic_block:
            connection.close()
    nodes = [node for node in get_chain_client().nodes() if not node.fault]
    if not nodes:
        found[_NODES] = "no node responds correctly"
    elif math.prod(node.failed_share for node in nodes) > _MOST_FAILED:
        found[_NODES] = "most requests to nodes fail"
    if settings.RELAY_SIGNER == "remote" and not remote_signer().responds():
        found[_SIGNER] = "does not respond"
    if recent_calls.are_turned_away:
        found[_CALLS] = "most calls of the last minute got 503 or 500"
    return found


def late_faults(previous: Faults) -> Faults:
    """Return the previous faults if PostgreSQL is slow, or that it is missing if it has just responded to no thread."""
    is_slow = time.monotonic() - metrics.database_seen.at < _SEEN_SECONDS
    return previous if is_slow else _NO_DATABASE


def _is_writable() -> bool:
    """Return whether PostgreSQL takes writes. A single read-only session is replaced."""
    for _ in range(2):
        (is_writable,) = only_row("SELECT current_setting('transaction_read_only') = 'off'", {})
        if is_writable:
            return True
        cast("DatabaseWrapper", connection).end_session()
    return False


def readiness(missing: Faults) -> tuple[int, bytes]:
    """Return the status and the body: each part is "ok", or why it is missing."""
    parts = {part: missing.get(part, "ok") for part in _PARTS}
    if not missing:
        return 200, json.dumps({"status": "ok", "parts": parts}).encode()
    first = next(part for part in _PARTS if part in missing)
    return 503, json.dumps({"status": "unavailable", "missing": first, "parts": parts}).encode()


def liveness(*, has_stalled: bool) -> tuple[int, bytes]:
    """Return the status and the body: a process whose threads have all stalled serves no caller."""
    return (
        (503, json.dumps({"status": "unavailable", "missing": THREADS}).encode())
        if has_stalled
        else (200, OK)
    )


def live(request: HttpRequest) -> HttpResponse:
    """Return 200: the process accepts requests."""
    return HttpResponse(OK, content_type="application/json")


def ready(request: HttpRequest) -> HttpResponse:
    """Return 200 if calls can be accepted and are settled, else 503 with the missing parts."""
    status, body = readiness(faults())
    return HttpResponse(body, content_type="application/json", status=status)


_PROBES = {"/healthz": live, "/readyz": ready}


def probes(get_response: Callable[[HttpRequest], HttpResponse]) -> Callable[[HttpRequest], HttpResponse]:
    """Middleware: respond to the probes; must come first."""
    return lambda request: _PROBES.get(request.path_info, get_response)(request)
