"""The id of the running request, which is in its answer and in every log line about it."""

from collections.abc import Callable

import structlog
from django.http import HttpRequest, HttpResponse


def request_id() -> str | None:
    """Return the id of the running request, as the logs show it; None outside a request."""
    found = structlog.contextvars.get_contextvars().get("request_id")
    return str(found) if found else None


def request_id_header(
    get_response: Callable[[HttpRequest], HttpResponse],
) -> Callable[[HttpRequest], HttpResponse]:
    """Middleware: return the request id to the caller, so that support can find the request in the logs."""

    def middleware(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        response["X-Request-ID"] = request_id() or ""
        return response

    return middleware
