"""How refusals appear in the API's description: one problem schema, one example per code."""

from collections import defaultdict
from inspect import getdoc
from typing import Any

from drf_spectacular.utils import OpenApiExample, OpenApiResponse
from rest_framework import serializers

from gateway.common.errors import DomainError


class ProblemSerializer(serializers.Serializer[Any]):
    """RFC 9457 problem document; facts of the refusal follow as further members."""

    type = serializers.CharField(help_text="Path of the page that explains the code.")
    title = serializers.CharField()
    status = serializers.IntegerField()
    code = serializers.CharField(help_text="Stable name of the refusal; decide by this.")
    detail = serializers.CharField(help_text="What happened this time, for people.")
    requestId = serializers.CharField(allow_null=True, help_text="Tell it to support.")  # noqa: N815


def problem_responses(*refusals: type[DomainError]) -> dict[int, OpenApiResponse]:
    """Return the responses of an operation that may answer these refusals, grouped by status, codes in order."""
    by_status: dict[int, dict[str, type[DomainError]]] = defaultdict(dict)
    for refusal in refusals:
        if refusal.code:
            by_status[refusal.status][refusal.code] = refusal
    return {status: _response(list(found.values())) for status, found in sorted(by_status.items())}


def _response(refusals: list[type[DomainError]]) -> OpenApiResponse:
    codes = ", ".join(f"`{refusal.code}`" for refusal in refusals)
    return OpenApiResponse(
        response=ProblemSerializer,
        description=f"Refused: {codes}.",
        examples=[_example(refusal) for refusal in refusals],
    )


def _example(refusal: type[DomainError]) -> OpenApiExample:
    return OpenApiExample(
        refusal.code,
        media_type="application/problem+json",
        value={
            "type": f"/problems/{refusal.code}",
            "title": refusal.title,
            "status": refusal.status,
            "code": refusal.code,
            "detail": (getdoc(refusal) or refusal.title).splitlines()[0],
            "requestId": "0f3c2b1a-5d4e-4f6a-8b7c-9d0e1f2a3b4c",
        },
    )
