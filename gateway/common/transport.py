"""What is refused by how a request travels, before anything of it is believed."""

from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest, HttpResponse

from gateway.common import errors
from gateway.common.problems import json_problem

Handler = Callable[[HttpRequest], HttpResponse]

# A scraper inside the network asks the process itself; probes are answered before they come here.
_WITHOUT_TLS = ("/metrics", "/metrics/")


def https_only(get_response: Handler) -> Handler:
    """
    Middleware: refuse plain http where the service is public by https.

    A caller who is redirected has sent its token in the clear and never notices. The
    pages for people are redirected by Django's own middleware, which stands before.
    """

    def middleware(request: HttpRequest) -> HttpResponse:
        if not settings.SECURE_SSL_REDIRECT or request.is_secure() or request.path in _WITHOUT_TLS:
            return get_response(request)
        return json_problem(
            errors.HttpsRequired("Ask by https; what this request carried has been readable.")
        )

    return middleware


def lengths_told(get_response: Handler) -> Handler:
    """
    Middleware: refuse a body in chunks.

    WSGI's readers go by Content-Length: without one they take a body for empty, and the
    caller would be answered as if it had sent nothing.
    """

    def middleware(request: HttpRequest) -> HttpResponse:
        if "HTTP_TRANSFER_ENCODING" not in request.META:
            return get_response(request)
        return json_problem(
            errors.LengthRequired("Send the body whole, with Content-Length and no Transfer-Encoding.")
        )

    return middleware
