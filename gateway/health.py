"""Liveness: the process runs. Readiness: it can serve requests."""

from collections.abc import Callable

from django.db import connection
from django.db.utils import Error
from django.http import HttpRequest, HttpResponse, JsonResponse
from psycopg_pool import PoolTimeout


def probes(get_response: Callable[[HttpRequest], HttpResponse]) -> Callable[[HttpRequest], HttpResponse]:
    """
    Middleware: answer `/healthz` and `/readyz` before anything else looks at the request.

    Probes come from the orchestrator every few seconds, under any host name, so they
    skip the check of host names and the log.
    """
    answers = {"/healthz": alive, "/readyz": ready}

    def middleware(request: HttpRequest) -> HttpResponse:
        answer = answers.get(request.path)
        return get_response(request) if answer is None else answer()

    return middleware


def alive() -> JsonResponse:
    """Answer 200 as long as the process can answer at all; a restart would not mend anything outside it."""
    return JsonResponse({"status": "ok"})


def ready() -> JsonResponse:
    """Answer 200 when PostgreSQL answers, else 503. Redis and node faults have their own refusals."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except (Error, PoolTimeout):
        return JsonResponse({"status": "unavailable", "missing": "database"}, status=503)
    return JsonResponse({"status": "ok"})
