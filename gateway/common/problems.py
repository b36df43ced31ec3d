"""
Every error of the API is answered in one shape: RFC 9457 `application/problem+json`.

Known refusals carry their facts; anything else is logged with the request id and
answered as `internal-error`, because an unknown exception's text may hold secrets.
"""

import functools
import logging
from collections.abc import Callable, Iterator
from typing import Any

from django.core.exceptions import DisallowedHost, RequestDataTooBig
from django.core.exceptions import PermissionDenied as DjangoPermissionDenied
from django.db import InterfaceError, OperationalError
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from rest_framework import exceptions as drf
from rest_framework.response import Response
from rest_framework.views import set_rollback

from gateway.common import errors
from gateway.common.http import POLICY_OF_DATA
from gateway.common.logging import request_id

logger = logging.getLogger(__name__)
CONTENT_TYPE = "application/problem+json"
_View = Callable[..., HttpResponse]

_KNOWN: tuple[tuple[type[Exception] | tuple[type[Exception], ...], type[errors.DomainError], str], ...] = (
    (drf.ParseError, errors.InvalidRequest, "The body is not valid JSON."),
    (
        (drf.NotAuthenticated, drf.AuthenticationFailed),
        errors.NotAuthenticated,
        "This endpoint needs the header Authorization: Bearer <JWT>.",
    ),
    ((drf.PermissionDenied, DjangoPermissionDenied), errors.PermissionDenied, "You may not do this."),
    ((drf.NotFound, Http404), errors.NotFound, "There is nothing at this address."),
    (drf.MethodNotAllowed, errors.MethodNotAllowed, "This path does not know the method."),
    (drf.NotAcceptable, errors.NotAcceptable, "The service answers application/json only."),
    (drf.UnsupportedMediaType, errors.UnsupportedMediaType, "Send the body as application/json."),
    (RequestDataTooBig, errors.RequestTooLarge, "The body is larger than the service reads."),
)


def as_refusal(error: Exception) -> errors.DomainError:
    """Translate any exception into the refusal that the client gets."""
    if isinstance(error, errors.DomainError):
        return error
    if isinstance(error, drf.ValidationError):
        found = list(_pointers(error.get_full_details()))
        return errors.InvalidRequest("Correct the fields listed in errors.", errors=found)
    if isinstance(error, drf.Throttled):
        wait = int(getattr(error, "wait", None) or 1) + 1
        return errors.TooManyRequests(f"Repeat after {wait} seconds.", retry_after=wait)
    for kinds, refusal, detail in _KNOWN:
        if isinstance(error, kinds):
            return refusal(detail)
    if isinstance(error, OperationalError | InterfaceError):
        logger.error("the database refused", exc_info=error)
        return errors.ServiceUnavailable(
            "The service cannot reach its records. Repeat the request.", retry_after=2
        )
    logger.error("unexpected error", exc_info=error)
    return errors.InternalError("The error was logged. Tell support the requestId.")


def document(refusal: errors.DomainError) -> dict[str, Any]:
    """Return the members of the problem document for `refusal`."""
    return {
        "type": f"/problems/{refusal.code}",
        "title": refusal.title,
        "status": refusal.status,
        "code": refusal.code,
        "detail": refusal.detail,
        "requestId": request_id(),
        **refusal.members,
    }


def _headers(refusal: errors.DomainError) -> dict[str, str]:
    headers: dict[str, str] = {"Cache-Control": "no-store", "Content-Security-Policy": POLICY_OF_DATA}
    if refusal.retry_after is not None:
        headers["Retry-After"] = str(refusal.retry_after)
    if refusal.status == errors.NotAuthenticated.status:
        headers["WWW-Authenticate"] = "Bearer"
    return headers


def exception_handler(error: Exception, context: dict[str, Any]) -> Response:
    """Answer an exception raised by a view; this is REST framework's EXCEPTION_HANDLER."""
    refusal = as_refusal(error)
    set_rollback()
    return Response(
        document(refusal), status=refusal.status, headers=_headers(refusal), content_type=CONTENT_TYPE
    )


def json_problem(refusal: errors.DomainError) -> JsonResponse:
    """Answer a refusal outside REST framework: middleware, unknown paths, plain views."""
    return JsonResponse(
        document(refusal), status=refusal.status, headers=_headers(refusal), content_type=CONTENT_TYPE
    )


def for_methods(*methods: str) -> Callable[[_View], _View]:
    """Refuse other methods of a view outside REST framework with a problem; Django's decorator would answer HTML."""

    def decorate(view: _View) -> _View:
        @functools.wraps(view)
        def known(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
            if request.method in methods:
                return view(request, *args, **kwargs)
            refused = json_problem(errors.MethodNotAllowed("This path does not know the method."))
            refused["Allow"] = ", ".join(methods)
            return refused

        return known

    return decorate


def malformed(request: HttpRequest, exception: Exception) -> JsonResponse:
    """Answer what Django refuses before any view, such as a foreign host name; this is Django's handler400."""
    detail = "The request is not one that this service takes."
    if isinstance(exception, DisallowedHost):
        detail = "This service has another name than the header Host says."
    return json_problem(errors.InvalidRequest(detail))


def unknown_path(request: HttpRequest, exception: Exception) -> JsonResponse:
    """Answer a path that no route knows; this is Django's handler404."""
    return json_problem(errors.NotFound("There is nothing at this address."))


def broken(request: HttpRequest) -> JsonResponse:
    """Answer an exception that escaped every view; Django has logged it. This is Django's handler500."""
    return json_problem(errors.InternalError("The error was logged. Tell support the requestId."))


def _pointers(details: Any, pointer: str = "") -> Iterator[dict[str, str]]:
    """Flatten REST framework's nested details into one entry per fault, addressed by RFC 6901 pointers."""
    if isinstance(details, dict) and "message" in details and "code" in details:
        where = pointer.removesuffix("/non_field_errors")
        yield {"pointer": where, "code": str(details["code"]), "detail": str(details["message"])}
    elif isinstance(details, dict):
        for name, inner in details.items():
            yield from _pointers(inner, f"{pointer}/{name}")
    elif isinstance(details, list):
        faults = all(isinstance(inner, dict) and "message" in inner for inner in details)
        for index, inner in enumerate(details):
            yield from _pointers(inner, pointer if faults else f"{pointer}/{index}")
