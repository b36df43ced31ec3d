"""The content security policy of the admin: own files only, no inline script, no eval, no frame."""

from collections.abc import Callable

from django.http import HttpRequest
from django.http.response import HttpResponseBase

_POLICY = {
    "default-src": ["'none'"],
    "script-src": ["'self'"],
    "style-src": ["'self'"],
    # Widths of bars and columns are attributes; an attribute's style can load and hide, and run nothing.
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


def staff_policy(
    get_response: Callable[[HttpRequest], HttpResponseBase],
) -> Callable[[HttpRequest], HttpResponseBase]:
    """Give every page of the admin its own policy instead of the API documentation's."""

    def with_policy(request: HttpRequest) -> HttpResponseBase:
        response = get_response(request)
        if request.resolver_match and "admin" in request.resolver_match.app_names:
            response._csp_replace = _POLICY  # type: ignore[attr-defined]
        return response

    return with_policy
