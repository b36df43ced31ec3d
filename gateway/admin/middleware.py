"""
Middleware of the admin: session timeouts, reads from a standby, and content security policies.

Pages of the API documentation keep the content security policy of the settings.
"""

import time
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import logout, user_logged_in
from django.core.exceptions import MiddlewareNotUsed
from django.dispatch import receiver
from django.http import HttpRequest
from django.http.response import HttpResponseBase

from gateway.common.db import has_replica, reading_from_replica
from gateway.common.http import POLICY_OF_DATA
from gateway.web.middleware import PageHandler, for_pages

_BEGAN, _SEEN, _CHANGED = "staff_began_at", "staff_seen_at", "staff_changed_at"
_ADMIN, _SAFE = "/admin/", ("GET", "HEAD")
# The time of last use is stored at most this often, so that not every request needs a write.
STEP_SECONDS = 15


@receiver(user_logged_in, dispatch_uid="staff-session-begins")
def _begin(request: HttpRequest, **_: Any) -> None:
    request.session[_BEGAN] = request.session[_SEEN] = int(time.time())


@for_pages
def staff_sessions(get_response: PageHandler) -> PageHandler:
    """Middleware: end staff sessions when idle, and at a maximum age."""

    def with_live_session(request: HttpRequest) -> HttpResponseBase:
        if settings.SESSION_COOKIE_NAME in request.COOKIES and request.user.is_authenticated:
            _see(request)
        return get_response(request)

    return with_live_session


def _see(request: HttpRequest) -> None:
    session, now = request.session, int(time.time())
    began, seen = session.get(_BEGAN, 0), session.get(_SEEN, 0)
    if now - seen >= settings.STAFF_IDLE_SECONDS:
        _end(request, "You were logged out because you were inactive.")
    elif now - began >= settings.SESSION_COOKIE_AGE:
        _end(request, "You were logged out because your session reached its maximum duration.")
    elif now - seen >= STEP_SECONDS:
        session[_SEEN] = now


def _end(request: HttpRequest, why: str) -> None:
    logout(request)
    messages.warning(request, why)


@for_pages
def replica_reads(get_response: PageHandler) -> PageHandler:
    """
    Middleware: read the admin's pages from a standby, except for staff who have just changed a row.

    Raises:
        MiddlewareNotUsed: no standby is configured.
    """
    if not has_replica():
        raise MiddlewareNotUsed

    def from_replica(request: HttpRequest) -> HttpResponseBase:
        if not request.path_info.startswith(_ADMIN) or not request.user.is_authenticated:
            return get_response(request)
        if request.method not in _SAFE:
            request.session[_CHANGED] = int(time.time())
        if time.time() - request.session.get(_CHANGED, 0) <= settings.DATABASE_REPLICA_SECONDS:
            return get_response(request)
        # Load the permissions from the primary; Django caches them on the user.
        request.user.get_all_permissions()
        with reading_from_replica():
            return get_response(request)

    return from_replica


_POLICY = {
    "default-src": ["'none'"],
    "script-src": ["'self'"],
    "style-src": ["'self'"],
    # Style attributes set the widths of bars and columns; they cannot run code.
    "style-src-attr": ["'unsafe-inline'"],
    "img-src": ["'self'", "data:"],
    "font-src": ["'self'"],
    "connect-src": ["'self'"],
    "form-action": ["'self'"],
    "frame-ancestors": ["'none'"],
    "base-uri": ["'none'"],
    "object-src": ["'none'"],
    "worker-src": None,
}


@for_pages
def policies(get_response: PageHandler) -> PageHandler:
    """Middleware: pages of the admin load only files of this site; other responses load nothing."""

    def with_policy(request: HttpRequest) -> HttpResponseBase:
        response = get_response(request)
        if request.resolver_match and "admin" in request.resolver_match.app_names:
            response._csp_replace = _POLICY  # type: ignore[attr-defined]
        elif not response.headers.get("Content-Type", "").startswith("text/html"):
            response.headers["Content-Security-Policy"] = POLICY_OF_DATA
        return response

    return with_policy
