"""Liveness tells the orchestrator that the process runs; readiness, that it can serve."""

from django.db import connection
from django.db.utils import Error
from django.http import HttpRequest, JsonResponse


def alive(request: HttpRequest) -> JsonResponse:
    """Answer 200 as long as the process answers at all; a restart cures nothing that lies outside it."""
    return JsonResponse({"status": "ok"})


def ready(request: HttpRequest) -> JsonResponse:
    """Answer 200 when PostgreSQL answers, else 503. Redis and node faults have their own refusals."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except Error:
        return JsonResponse({"status": "unavailable", "missing": "database"}, status=503)
    return JsonResponse({"status": "ok"})
