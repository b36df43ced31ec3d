"""The page that staff see instead of the one they asked for; it needs neither a database nor a login."""

from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse

from gateway.common import errors
from gateway.common.errors import DomainError
from gateway.common.logging import request_id
from gateway.common.problems import json_problem


def forbidden(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Answer somebody who may not see a page; this is Django's handler403."""
    problem = errors.PermissionDenied("This is not for you.")
    text = "Ask a superuser if you need it for your work."
    return _answer(request, problem, "This is not for your roles", text)


def unknown_path(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Answer a path that no route knows, or a row that is not there; this is Django's handler404."""
    problem = errors.NotFound("There is nothing at this address.")
    text = "The row may be gone, or the address is mistyped."
    return _answer(request, problem, "There is nothing here", text)


def broken(request: HttpRequest) -> HttpResponse:
    """Answer an exception that escaped every view; Django has logged it. This is Django's handler500."""
    problem = errors.InternalError("The error was logged. Tell support the requestId.")
    text = (
        "It is logged. What you sent may or may not be done: look at the row's history before you repeat it."
    )
    return _answer(request, problem, "Something went wrong on our side", text)


def csrf_failed(request: HttpRequest, reason: str = "") -> HttpResponse:
    """Answer a form that is not ours, or is older than its login; this is Django's CSRF_FAILURE_VIEW."""
    problem = errors.PermissionDenied("A form of another site, or one that is too old.")
    text = "Nothing was done. Go back, reload the page and send it anew."
    return _answer(request, problem, "This form is too old", text)


def locked_out(
    request: HttpRequest, original_response: HttpResponse | None = None, credentials: Any = None
) -> HttpResponse:
    """Answer a login after too many failed ones; this is axes' AXES_LOCKOUT_CALLABLE."""
    minutes = int(settings.AXES_COOLOFF_TIME.total_seconds()) // 60
    text = (
        f"For {minutes} minutes from the last try nothing opens this name from where you are, not even the right "
        "password. A superuser can open it sooner, under Access attempts."
    )
    response = _page(request, 429, "Too many wrong logins", text)
    response["Retry-After"] = str(minutes * 60)
    return response


def _answer(request: HttpRequest, problem: DomainError, title: str, text: str) -> HttpResponse:
    if settings.WEB_SERVES != "service" and request.path.startswith(reverse("admin:index")):
        return _page(request, problem.status, title, text)
    return json_problem(problem)


def _page(request: HttpRequest, status: int, title: str, text: str) -> HttpResponse:
    context = {"title": title, "text": text, "status": status, "request_id": request_id() or ""}
    return render(request, "admin/refused.html", context, status=status)
