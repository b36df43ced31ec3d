"""The service's own middleware: the request id, and requests that are refused by how they arrive."""

from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest, HttpResponse

from gateway.common import errors
from gateway.common.logging import request_id
from gateway.common.problems import json_problem

Handler = Callable[[HttpRequest], HttpResponse]
# A scraper inside the network asks the process itself.
_WITHOUT_TLS = ("/metrics", "/metrics/")


def request_id_header(get_response: Handler) -> Handler:
    """Middleware: return the request id to the caller, so that support can find the request in the logs."""

    def middleware(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        response["X-Request-ID"] = request_id() or ""
        return response

    return middleware


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


def unread_bodies(get_response: Handler) -> Handler:
    """
    Middleware: refuse a request whose body was not read, and answer what the server refused before Django saw it.

    The server reads bodies of a stated length only. One in chunks would seem empty, and the caller
    would be answered as if it had sent nothing.
    """

    def middleware(request: HttpRequest) -> HttpResponse:
        refusal: errors.DomainError | None = request.META.get(errors.REFUSAL)
        if refusal is not None:
            return json_problem(refusal)
        if "HTTP_TRANSFER_ENCODING" in request.META:
            return json_problem(
                errors.LengthRequired("Send the body whole, with Content-Length and no Transfer-Encoding.")
            )
        return get_response(request)

    return middleware
