"""
Keep secrets out of log lines, and decide at which level a refusal is logged.

The id of the running request, which is in its answer and in every log line about it.
"""

import logging
import re
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

import structlog
from django.http import HttpRequest, HttpResponse

# Frameworks log paths unchanged. A postback's path ends in a secret, and its query is signed.
_POSTBACK = re.compile(r'(/api/postbacks/[^/\s"\\]+/)[^\s"\\]+')


def without_path_tokens(logger: Any, name: str, line: str) -> str:
    """Cut the path of a postback after the network; a structlog processor for rendered lines."""
    return _POSTBACK.sub(r"\1…", line)


def refusals_are_warnings(record: logging.LogRecord) -> bool:
    """
    Log refusals as WARNING; a filter for Django's loggers that would log them as errors.

    A 503 is an answer that we chose, and anybody can make up a host name. Real faults
    are logged where they happen, as ERROR and with a trace, and must not drown in these.
    """
    told: object = record.msg
    event = told if isinstance(told, dict) else {}
    is_for_now = HTTPStatus.SERVICE_UNAVAILABLE in (getattr(record, "status_code", None), event.get("code"))
    if not is_for_now and not record.name.startswith("django.security."):
        return True
    record.levelno, record.levelname = logging.WARNING, logging.getLevelName(logging.WARNING)
    record.exc_info = record.exc_text = None
    if "level" in event:
        event["level"] = "warning"
    return logging.getLogger(record.name).isEnabledFor(logging.WARNING)


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
