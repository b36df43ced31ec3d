"""The refusals of an endpoint as OpenAPI describes them: one response per status, one example per code."""

import inspect
from collections.abc import Iterator
from typing import Any

from drf_spectacular.utils import OpenApiExample, OpenApiResponse
from rest_framework import serializers

from gateway.common import errors
from gateway.common.errors import DomainError
from gateway.common.problems import CONTENT_TYPE


class ProblemSerializer(serializers.Serializer[Any]):
    """An RFC 9457 problem document. Some codes add further members, which their own page describes."""

    type = serializers.CharField(help_text="Address of the page that describes the code.")
    title = serializers.CharField(help_text="What is refused, the same for every occurrence.")
    status = serializers.IntegerField(help_text="The HTTP status.")
    code = serializers.CharField(help_text="Stable name of the refusal; decide by this.")
    detail = serializers.CharField(help_text="This occurrence, for a person.")
    requestId = serializers.CharField(  # noqa: N815
        allow_null=True, help_text="What to tell support; also in X-Request-ID."
    )

    class Meta:
        ref_name = "Problem"


# Refusals of any request.
ALWAYS = (errors.HttpsRequired, errors.TooManyRequests, errors.InternalError, errors.ServiceUnavailable)
# Further refusals of a request with a body.
BODY = (errors.InvalidRequest, errors.LengthRequired, errors.RequestTooLarge, errors.UnsupportedMediaType)


def problem_responses(*refusals: type[DomainError]) -> dict[tuple[int, str], OpenApiResponse]:
    """
    Return the `responses` of `extend_schema` for these refusals and those of any request.

    A refusal includes its subclasses, so `NotAuthenticated` documents every reason for
    which an access token is not accepted.
    """
    by_status: dict[int, dict[str, type[DomainError]]] = {}
    for refusal in (*refusals, *ALWAYS):
        for kind in _with_kinds(refusal):
            by_status.setdefault(kind.status, {})[kind.code] = kind
    return {(status, CONTENT_TYPE): _response(by_status[status]) for status in sorted(by_status)}


def meaning(refusal: type[DomainError]) -> str:
    """Return the refusal's docstring for callers, its paragraphs separated by an empty line."""
    return inspect.cleandoc(refusal.__doc__ or "")


def _with_kinds(refusal: type[DomainError]) -> Iterator[type[DomainError]]:
    if refusal.code:
        yield refusal
    for kind in refusal.__subclasses__():
        yield from _with_kinds(kind)


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
        "detail": " ".join(meaning(kind).split("\n\n")[0].split()),
        "requestId": "6f1c0a52-3f0e-4d1b-9d2c-7f5b5c1f2a10",
    }
    return OpenApiExample(
        kind.code, summary=kind.title, value=value, media_type=CONTENT_TYPE, response_only=True
    )
