"""
Rendering of all errors of the API as RFC 9457 `application/problem+json`.

A `DomainError` becomes its own document. Any other exception is logged with the request id and rendered as
`internal-error`, because its text may contain secrets. The second half describes the errors of an endpoint for OpenAPI:
one response per status, one example per code.
"""

import functools
import inspect
import logging
from collections.abc import Callable, Iterator
from datetime import datetime
from math import ceil
from typing import Any

from django.core.exceptions import DisallowedHost, RequestDataTooBig
from django.core.exceptions import PermissionDenied as DjangoPermissionDenied
from django.db import InterfaceError, OperationalError
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from drf_spectacular.utils import OpenApiExample, OpenApiResponse
from rest_framework import exceptions as drf
from rest_framework import serializers
from rest_framework.response import Response
from rest_framework.views import set_rollback

from gateway.common import clock, errors
from gateway.common.errors import DomainError
from gateway.common.http import POLICY_OF_DATA
from gateway.common.logging import request_id

logger = logging.getLogger(__name__)
CONTENT_TYPE = "application/problem+json"
_View = Callable[..., HttpResponse]

_USE_ALLOWED = (
    "This path does not allow the method. The header Allow of this response lists those that it allows."
)

_Kinds = type[Exception] | tuple[type[Exception], ...]
_TRANSLATIONS: tuple[tuple[_Kinds, type[DomainError], str], ...] = (
    (drf.ParseError, errors.InvalidRequest, "The body is not valid JSON."),
    (
        (drf.NotAuthenticated, drf.AuthenticationFailed),
        errors.NotAuthenticated,
        "Send the header Authorization: Bearer <JWT>, with the access token of /api/auth/verify.",
    ),
    (
        (drf.PermissionDenied, DjangoPermissionDenied),
        errors.PermissionDenied,
        "You do not have permission for this.",
    ),
    ((drf.NotFound, Http404), errors.NotFound, "There is nothing at this address."),
    (drf.MethodNotAllowed, errors.MethodNotAllowed, _USE_ALLOWED),
    (drf.UnsupportedMediaType, errors.UnsupportedMediaType, "Send the body as application/json."),
    (RequestDataTooBig, errors.RequestTooLarge, "The body is too large."),
)


def to_problem(error: Exception) -> DomainError:
    """Return the error that the client gets for this exception."""
    if isinstance(error, DomainError):
        return error
    if isinstance(error, drf.ValidationError):
        faults = list(_pointers(error.get_full_details()))
        return errors.InvalidRequest("Correct the fields listed in errors.", errors=faults)
    if isinstance(error, drf.Throttled):
        wait = int(getattr(error, "wait", None) or 1) + 1
        return errors.TooManyRequests(f"Retry after {wait} seconds.", retry_after=wait)
    for kinds, make, detail in _TRANSLATIONS:
        if isinstance(error, kinds):
            return make(detail)
    if isinstance(error, OperationalError | InterfaceError):
        logger.error("the database refused", exc_info=error)
        return errors.ServiceUnavailable("The database is unavailable. Retry.", retry_after=2)
    logger.error("unexpected error", exc_info=error)
    return errors.InternalError("The error was logged. Give the requestId to support.")


def document(problem: DomainError) -> dict[str, Any]:
    return {
        "type": f"/problems/{problem.code}",
        "title": problem.title,
        "status": problem.status,
        "code": problem.code,
        "detail": problem.detail,
        "requestId": request_id(),
        **problem.members,
    }


def _arguments(problem: DomainError) -> dict[str, Any]:
    headers: dict[str, str] = {"Cache-Control": "no-store", "Content-Security-Policy": POLICY_OF_DATA}
    if (wait := _seconds_to_wait(problem)) is not None:
        headers["Retry-After"] = str(wait)
    if problem.status == errors.NotAuthenticated.status:
        headers["WWW-Authenticate"] = "Bearer"
    return {
        "data": document(problem),
        "status": problem.status,
        "headers": headers,
        "content_type": CONTENT_TYPE,
    }


def _seconds_to_wait(problem: DomainError) -> int | None:
    """Return after how many seconds a retry may succeed: as the error says, or once the limit that refused `resets`."""
    resets = problem.members.get("resets")
    if problem.retry_after is not None or resets is None:
        return problem.retry_after
    return max(1, ceil((datetime.fromisoformat(resets) - clock.now()).total_seconds()))


def exception_handler(error: Exception, context: dict[str, Any]) -> Response:
    """Return the response for an exception raised by a view; REST framework's EXCEPTION_HANDLER."""
    problem = to_problem(error)
    set_rollback()
    return Response(**_arguments(problem))


def json_problem(problem: DomainError) -> JsonResponse:
    """Return the response for an error outside REST framework: in middleware, plain views, or for unknown paths."""
    return JsonResponse(**_arguments(problem))


def only_methods(*methods: str) -> Callable[[_View], _View]:
    """Decorator: refuse other methods with a problem document; Django's decorator would return HTML."""

    def decorate(view: _View) -> _View:
        @functools.wraps(view)
        def checked(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
            if request.method in methods:
                return view(request, *args, **kwargs)
            problem = json_problem(errors.MethodNotAllowed(_USE_ALLOWED))
            problem["Allow"] = ", ".join(methods)
            return problem

        return checked

    return decorate


def malformed(request: HttpRequest, exception: Exception) -> JsonResponse:
    """Return the response to a request that Django refuses before any view, such as for its host; handler400."""
    detail = "The service cannot process this request."
    if isinstance(exception, DisallowedHost):
        detail = "The Host header does not name this service."
    return json_problem(errors.InvalidRequest(detail))


def _pointers(details: Any, pointer: str = "") -> Iterator[dict[str, str]]:
    """Flatten REST framework's nested details into one entry per fault, addressed by RFC 6901 pointers."""
    if isinstance(details, dict) and "message" in details and "code" in details:
        where = pointer.removesuffix("/non_field_errors")
        yield {"pointer": where, "code": str(details["code"]), "detail": str(details["message"])}
    elif isinstance(details, dict):
        for name, inner in details.items():
            yield from _pointers(inner, f"{pointer}/{str(name).replace('~', '~0').replace('/', '~1')}")
    elif isinstance(details, list):
        faults = all(isinstance(inner, dict) and "message" in inner for inner in details)
        for index, inner in enumerate(details):
            yield from _pointers(inner, pointer if faults else f"{pointer}/{index}")


class ProblemSerializer(serializers.Serializer[Any]):
    """An RFC 9457 problem document. Some codes add further members, which their own page describes."""

    type = serializers.CharField(help_text="URL of the page that describes the code.")
    title = serializers.CharField(help_text="Title of the error, the same for every occurrence.")
    status = serializers.IntegerField(help_text="The HTTP status.")
    code = serializers.CharField(help_text="Stable code of the error, for programs.")
    detail = serializers.CharField(help_text="Description of this occurrence, for people.")
    requestId = serializers.CharField(  # noqa: N815
        allow_null=True, help_text="Id for support; also in X-Request-ID."
    )

    class Meta:
        ref_name = "Problem"


# Errors of any request.
COMMON_ERRORS = (
    errors.HttpsRequired,
    errors.TooManyRequests,
    errors.InternalError,
    errors.ServiceUnavailable,
)
# Further errors of a request with a body.
BODY_ERRORS = (
    errors.InvalidRequest,
    errors.LengthRequired,
    errors.RequestTooLarge,
    errors.UnsupportedMediaType,
)


def problem_responses(*kinds: type[DomainError]) -> dict[tuple[int, str], OpenApiResponse]:
    """
    Return the `responses` of `extend_schema` for these errors and those of any request.

    An error includes its subclasses, so `NotAuthenticated` documents all errors of access tokens.
    """
    by_status: dict[int, dict[str, type[DomainError]]] = {}
    for error in (*kinds, *COMMON_ERRORS):
        for kind in _with_subclasses(error):
            by_status.setdefault(kind.status, {})[kind.code] = kind
    return {(status, CONTENT_TYPE): _response(by_status[status]) for status in sorted(by_status)}


def description_of(error: type[DomainError]) -> str:
    """Return the error's docstring for callers, with paragraphs separated by an empty line."""
    return inspect.cleandoc(error.__doc__ or "")


def _with_subclasses(error: type[DomainError]) -> Iterator[type[DomainError]]:
    if error.code:
        yield error
    for kind in error.__subclasses__():
        yield from _with_subclasses(kind)


def _response(kinds: dict[str, type[DomainError]]) -> OpenApiResponse:
    listed = "\n".join(f"- `{code}`: {kind.title}." for code, kind in sorted(kinds.items()))
    examples = [_example(kind) for _, kind in sorted(kinds.items())]
    return OpenApiResponse(ProblemSerializer, description=listed, examples=examples)


def _example(kind: type[DomainError]) -> OpenApiExample:
    value = {
        "type": f"/problems/{kind.code}",
        "title": kind.title,
        "status": kind.status,
        "code": kind.code,
        "detail": " ".join(description_of(kind).split("\n\n")[0].split()),
        "requestId": "6f1c0a52-3f0e-4d1b-9d2c-7f5b5c1f2a10",
    }
    return OpenApiExample(
        kind.code, summary=kind.title, value=value, media_type=CONTENT_TYPE, response_only=True
    )
