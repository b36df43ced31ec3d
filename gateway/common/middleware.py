"""Refuse requests by how they arrive (plain http, chunked bodies), before reading them."""

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
    Middleware: refuse plain http where the service is public over https.

    A redirected caller would have sent its token in the clear without noticing. Pages for
    people are redirected by Django's own middleware, which runs before this one.
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
    Middleware: refuse a chunked body.

    WSGI servers go by Content-Length: without it the body seems empty, and the caller
    would be answered as if it had sent nothing.
    """

    def middleware(request: HttpRequest) -> HttpResponse:
        if "HTTP_TRANSFER_ENCODING" not in request.META:
            return get_response(request)
        return json_problem(
            errors.LengthRequired("Send the body whole, with Content-Length and no Transfer-Encoding.")
        )

    return middleware
