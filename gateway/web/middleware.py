"""
Middleware of every web process: the request log, transport checks, and middleware for pages only.

API requests have no cookies, forms or pages, so they skip the middleware for pages.
"""

import logging
import random
import uuid
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any

import structlog
from corsheaders.middleware import CorsMiddleware
from csp.middleware import CSPMiddleware
from django.conf import settings
from django.contrib.auth.middleware import AuthenticationMiddleware
from django.contrib.messages.middleware import MessageMiddleware
from django.contrib.sessions.middleware import SessionMiddleware
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.utils.cache import patch_vary_headers
from django.utils.functional import SimpleLazyObject

from gateway.common import errors
from gateway.common.http import POLICY_OF_DATA
from gateway.common.problems import json_problem
from gateway.web import tracing

Handler = Callable[[HttpRequest], HttpResponse]
PageHandler = Callable[[HttpRequest], HttpResponseBase]
# A scraper inside the network calls the process directly, over plain http.
_WITHOUT_TLS = ("/metrics", "/metrics/")
_API, _PAGES_OF_API = "/api/", "/api/docs"
_LEVELS = {4: logging.WARNING, 5: logging.ERROR}
_log = structlog.get_logger("gateway.requests")


def requests_logged(get_response: Handler) -> Handler:
    """
    Middleware: give each request an id, and log a line when it is served.

    The log lines of the request have the id, and the response has it as a header, so that support can find the lines.
    """

    def middleware(request: HttpRequest) -> HttpResponse:
        # The id is not a secret, so a fast generator is sufficient.
        request_id = str(uuid.UUID(int=random.getrandbits(128), version=4))
        with structlog.contextvars.bound_contextvars(request_id=request_id):
            response = get_response(request)
            _log.log(
                _LEVELS.get(response.status_code // 100, logging.INFO),
                "request_finished",
                request=f"{request.method} {request.get_full_path()}",
                code=response.status_code,
                user_id=_user_id(request),
                user_agent=request.META.get("HTTP_USER_AGENT"),
            )
        response["X-Request-ID"] = request_id
        return response

    return middleware


def _user_id(request: HttpRequest) -> Any:
    """Return the id of the authenticated user, if the request loaded one. Costs no query."""
    user = getattr(request, "_cached_user", None) or request.__dict__.get("user")
    return None if isinstance(user, SimpleLazyObject) else getattr(user, "pk", None)


def requests_traced(get_response: Handler) -> Handler:
    """Middleware: trace requests that submit a relay call. Must come first; used only if tracing is enabled."""

    def middleware(request: HttpRequest) -> HttpResponse:
        with tracing.request(f"{request.method} {request.path}") as span:
            response = get_response(request)
            span.attributes |= {
                "http.response.status_code": response.status_code,
                "relay.request_id": response.get("X-Request-ID", ""),
            }
        return response

    return middleware


def https_only(get_response: Handler) -> Handler:
    """
    Middleware: refuse plain http if the service is public over https.

    A redirect would hide from API callers that they send tokens unencrypted. Django's own middleware, which runs before
    this one, redirects pages.
    """

    def middleware(request: HttpRequest) -> HttpResponse:
        if not settings.SECURE_SSL_REDIRECT or request.is_secure() or request.path in _WITHOUT_TLS:
            return get_response(request)
        return json_problem(
            errors.HttpsRequired("Use HTTPS. This request was sent unencrypted; rotate its secrets.")
        )

    return middleware


def unread_bodies(get_response: Handler) -> Handler:
    """
    Middleware: refuse chunked bodies, and render the errors of requests that the event loop refused.

    The server reads only bodies with a Content-Length. A chunked body would appear to be empty.
    """

    def middleware(request: HttpRequest) -> HttpResponse:
        refusal: errors.DomainError | None = request.META.get(errors.REFUSAL)
        if refusal is not None:
            return json_problem(refusal)
        if "HTTP_TRANSFER_ENCODING" in request.META:
            return json_problem(errors.LengthRequired("Send Content-Length instead of Transfer-Encoding."))
        return get_response(request)

    return middleware


class CrossOrigin(CorsMiddleware):
    """CORS, with a fast path for requests without an Origin header."""

    def add_response_headers(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        """Add the CORS headers; without an Origin, only `Vary: origin`."""
        if "HTTP_ORIGIN" in request.META:
            return super().add_response_headers(request, response)
        if request._cors_enabled:  # type: ignore[attr-defined] # set by the middleware itself
            patch_vary_headers(response, ("origin",))
        return response


if TYPE_CHECKING:
    from django.utils.deprecation import MiddlewareMixin as _Middleware
else:
    _Middleware = object


class _ForPages(_Middleware):
    """Mix-in: API requests skip the middleware class that follows it."""

    def __call__(self, request: HttpRequest) -> Any:
        return self.get_response(request) if _is_of_api(request) else super().__call__(request)


def _is_of_api(request: HttpRequest) -> bool:
    path = request.path_info
    return path.startswith(_API) and not path.startswith(_PAGES_OF_API)


class SessionsOfPages(_ForPages, SessionMiddleware):
    """Django's sessions, for pages."""


class UsersOfPages(_ForPages, AuthenticationMiddleware):
    """The user of the session, for pages."""


class MessagesOfPages(_ForPages, MessageMiddleware):
    """Django's messages to the session's user, for pages only."""


class PolicyOfPages(_ForPages, CSPMiddleware):
    """The content security policy of the settings, for pages; API responses may load nothing."""

    def __call__(self, request: HttpRequest) -> Any:
        response = super().__call__(request)
        if _is_of_api(request):
            response.headers["Content-Security-Policy"] = POLICY_OF_DATA
        return response


def for_pages(middleware: Callable[[PageHandler], PageHandler]) -> Callable[[PageHandler], PageHandler]:
    """Decorate a middleware, so that API requests skip it."""

    @wraps(middleware)
    def of_pages(get_response: PageHandler) -> PageHandler:
        handle_page = middleware(get_response)
        return lambda request: get_response(request) if _is_of_api(request) else handle_page(request)

    return of_pages
