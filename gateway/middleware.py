"""The service's own middleware: probes, the request id, and requests that are refused by how they arrive."""

from collections.abc import Callable

from django.conf import settings
from django.db import connection
from django.db.utils import Error
from django.http import HttpRequest, HttpResponse, JsonResponse
from psycopg_pool import PoolTimeout

from gateway.common import errors
from gateway.common.logging import request_id
from gateway.common.problems import json_problem

Handler = Callable[[HttpRequest], HttpResponse]
# A scraper inside the network asks the process itself; probes are answered before they come here.
_WITHOUT_TLS = ("/metrics", "/metrics/")


def request_id_header(get_response: Handler) -> Handler:
    """Middleware: return the request id to the caller, so that support can find the request in the logs."""

    def middleware(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        response["X-Request-ID"] = request_id() or ""
        return response

    return middleware


def probes(get_response: Handler) -> Handler:
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
    """Answer 200 when PostgreSQL answers, else 503. Endpoints that need Redis or the node answer for themselves."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except (Error, PoolTimeout):
        return JsonResponse({"status": "unavailable", "missing": "database"}, status=503)
    return JsonResponse({"status": "ok"})


def https_only(get_response: Handler) -> Handler:
    """
    Middleware: refuse plain http where the service is public over https.

    A redirected caller would have sent its token in the clear without noticing. Pages for
    people are redirected by Django's own middleware, which runs before this one.
    """

    def middleware(request: HttpRequest) -> HttpResponse:
        if not settings.SECURE_SSL_REDIRECT or request.is_secure() or request.path in _WITHOUT_TLS:
            return get_response(request)
        return json_problem(
            errors.HttpsRequired("Ask by https; what this request carried has been readable.")
        )

    return middleware


def content_length_required(get_response: Handler) -> Handler:
    """
    Middleware: refuse a chunked body.

    WSGI servers go by Content-Length: without it the body seems empty, and the caller
    would be answered as if it had sent nothing.
    """

    def middleware(request: HttpRequest) -> HttpResponse:
        if "HTTP_TRANSFER_ENCODING" not in request.META:
            return get_response(request)
        return json_problem(
            errors.LengthRequired("Send the body whole, with Content-Length and no Transfer-Encoding.")
        )

    return middleware
