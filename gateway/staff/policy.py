"""
Content security policies of the admin and of data; the API documentation has the one in the settings.

Admin: own files only, no inline script, no eval, no frame. Data: nothing at all.
"""

from collections.abc import Callable

from django.http import HttpRequest
from django.http.response import HttpResponseBase

from gateway.common.problems import POLICY_OF_DATA

_POLICY = {
    "default-src": ["'none'"],
    "script-src": ["'self'"],
    "style-src": ["'self'"],
    # Widths of bars and columns are style attributes, which can load and hide, but run nothing.
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


def policies(
    get_response: Callable[[HttpRequest], HttpResponseBase],
) -> Callable[[HttpRequest], HttpResponseBase]:
    """Middleware: set the policy of admin pages, and of answers that are not pages."""

    def with_policy(request: HttpRequest) -> HttpResponseBase:
        response = get_response(request)
        if request.resolver_match and "admin" in request.resolver_match.app_names:
            response._csp_replace = _POLICY  # type: ignore[attr-defined]
        elif not response.headers.get("Content-Type", "").startswith("text/html"):
            response.headers["Content-Security-Policy"] = POLICY_OF_DATA
        return response

    return with_policy
