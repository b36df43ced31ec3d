"""Error pages for staff; they need neither the database nor a login."""

import sys
from typing import Any

from django.conf import settings
from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse

from gateway.common import errors
from gateway.common.errors import DomainError
from gateway.common.logging import request_id
from gateway.common.problems import json_problem


def forbidden(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Return the page for a missing permission; Django's handler403."""
    problem = errors.PermissionDenied("You do not have permission.")
    text = "If you need access for your work, ask a superuser."
    return _response(request, problem, "Your roles do not allow this", text)


def unknown_path(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Return the page for an unknown path or a missing row; Django's handler404."""
    problem = errors.NotFound(
        "There is nothing at this address. Check the base URL and the path letter by letter; /api/docs lists the paths."
    )
    text = "The row may have been deleted, or the URL is mistyped."
    return _response(request, problem, "Page not found", text)


def broken(request: HttpRequest) -> HttpResponse:
    """Return the page for an unhandled exception, which Django has logged; Django's handler500."""
    if is_outage():
        problem: DomainError = errors.ServiceUnavailable("The database is unavailable. Retry.", retry_after=2)
        text = "Your action may have been carried out: check the row's history before you repeat it."
        return _response(request, problem, "The database is unavailable", text)
    problem = errors.InternalError("The error was logged. Give the requestId to support.")
    text = "The error was logged. Your action may have been carried out: check the row's history before you repeat it."
    return _response(request, problem, "Internal error", text)


def is_outage() -> bool:
    """Return whether the exception that is being handled means that the database is unavailable."""
    return isinstance(sys.exception(), OperationalError | InterfaceError)


def csrf_failed(request: HttpRequest, reason: str = "") -> HttpResponse:
    """Return the page for a form from another site or an earlier login; Django's CSRF_FAILURE_VIEW."""
    problem = errors.PermissionDenied("The form comes from another site, or it has expired.")
    text = "Nothing was done. Go back, reload the page and submit the form again."
    return _response(request, problem, "This form has expired", text)


def locked_out(
    request: HttpRequest, original_response: HttpResponse | None = None, credentials: Any = None
) -> HttpResponse:
    """Return the page for a login after too many failed ones; AXES_LOCKOUT_CALLABLE of django-axes."""
    minutes = int(settings.AXES_COOLOFF_TIME.total_seconds()) // 60
    if request.path.startswith("/api/"):
        detail = f"Sign-in is locked for {minutes} minutes after the last attempt."
        return json_problem(errors.TooManyRequests(detail, retry_after=minutes * 60))
    text = (
        f"Login with this name from your network is locked for {minutes} minutes after the last attempt. A superuser "
        "can unlock it earlier, under Access attempts."
    )
    response = _page(request, 429, "Too many failed logins", text)
    response["Retry-After"] = str(minutes * 60)
    return response


def _response(request: HttpRequest, problem: DomainError, title: str, text: str) -> HttpResponse:
    if settings.WEB_SERVES != "service" and request.path.startswith(reverse("admin:index")):
        return _page(request, problem.status, title, text)
    return json_problem(problem)


def _page(request: HttpRequest, status: int, title: str, text: str) -> HttpResponse:
    context = {"title": title, "text": text, "status": status, "request_id": request_id() or ""}
    return render(request, "admin/refused.html", context, status=status)
