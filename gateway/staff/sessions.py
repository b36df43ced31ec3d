"""A staff session ends when it is idle, and after a working day in any case."""

import time
from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import logout, user_logged_in
from django.dispatch import receiver
from django.http import HttpRequest
from django.http.response import HttpResponseBase

_BEGAN, _SEEN = "staff_began_at", "staff_seen_at"
# Not every request is worth a write.
_STEP_SECONDS = 15


@receiver(user_logged_in, dispatch_uid="staff-session-begins")
def _begin(request: HttpRequest, **_: Any) -> None:
    request.session[_BEGAN] = request.session[_SEEN] = int(time.time())


def staff_sessions(
    get_response: Callable[[HttpRequest], HttpResponseBase],
) -> Callable[[HttpRequest], HttpResponseBase]:
    """Log out whoever was idle for too long; the page then asks for both factors again."""

    def with_live_session(request: HttpRequest) -> HttpResponseBase:
        # Requests of wallets carry no cookie of ours and must not read a session.
        if settings.SESSION_COOKIE_NAME in request.COOKIES and request.user.is_authenticated:
            _see(request)
        return get_response(request)

    return with_live_session


def _see(request: HttpRequest) -> None:
    session, now = request.session, int(time.time())
    began, seen = session.get(_BEGAN, 0), session.get(_SEEN, 0)
    if now - seen >= settings.STAFF_IDLE_SECONDS:
        _end(request, "You were logged out because nothing was done for a while.")
    elif now - began >= settings.SESSION_COOKIE_AGE:
        _end(request, "You were logged out: a login lasts no longer than this.")
    elif now - seen >= _STEP_SECONDS:
        session[_SEEN] = now


def _end(request: HttpRequest, why: str) -> None:
    logout(request)
    messages.warning(request, why)
