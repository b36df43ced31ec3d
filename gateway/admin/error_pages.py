"""The page that staff see instead of the one they asked for; it needs neither a database nor a login."""

from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse

from gateway.common import errors, problems
from gateway.common.logging import request_id


def forbidden(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Answer somebody who may not see a page; this is Django's handler403."""
    if _is_admin_page(request):
        return _page(
            request, 403, "This is not for your roles", "Ask a superuser if you need it for your work."
        )
    return problems.json_problem(errors.PermissionDenied("This is not for you."))


def unknown_path(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Answer a path that no route knows, or a row that is not there; this is Django's handler404."""
    if _is_admin_page(request):
        return _page(
            request, 404, "There is nothing here", "The row may be gone, or the address is mistyped."
        )
    return problems.unknown_path(request, exception)


def broken(request: HttpRequest) -> HttpResponse:
    """Answer an exception that escaped every view; Django has logged it. This is Django's handler500."""
    if _is_admin_page(request):
        told = "It is logged. What you sent may or may not be done: look at the row's history before you repeat it."
        return _page(request, 500, "Something went wrong on our side", told)
    return problems.broken(request)


def csrf_failed(request: HttpRequest, reason: str = "") -> HttpResponse:
    """Answer a form that is not ours, or is older than its login; this is Django's CSRF_FAILURE_VIEW."""
    if _is_admin_page(request):
        return _page(
            request,
            403,
            "This form is too old",
            "Nothing was done. Go back, reload the page and send it anew.",
        )
    return problems.json_problem(errors.PermissionDenied("A form of another site, or one that is too old."))


def locked_out(
    request: HttpRequest, original_response: HttpResponse | None = None, credentials: Any = None
) -> HttpResponse:
    """Answer a login after too many failed ones; this is axes' AXES_LOCKOUT_CALLABLE."""
    minutes = int(settings.AXES_COOLOFF_TIME.total_seconds()) // 60
    told = (
        f"For {minutes} minutes from the last try nothing opens this name from where you are, not even the right "
        "password. A superuser can open it sooner, under Access attempts."
    )
    response = _page(request, 429, "Too many wrong logins", told)
    response["Retry-After"] = str(minutes * 60)
    return response


def _is_admin_page(request: HttpRequest) -> bool:
    return request.path.startswith(reverse("admin:index"))


def _page(request: HttpRequest, status: int, title: str, told: str) -> HttpResponse:
    context: dict[str, Any] = {
        "title": title,
        "told": told,
        "status": status,
        "request_id": request_id() or "",
    }
    return render(request, "admin/refused.html", context, status=status)
