"""GET /api/sponsors/{name}/export: a month's calls or entries as CSV."""

import csv
import io
import re
from collections.abc import Iterator
from datetime import UTC, datetime

from django.http import StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.request import Request

from gateway.common.errors import InvalidRequest
from gateway.common.http import PRIVATE
from gateway.common.problems import problem_responses
from sponsors.api.access import FAULTS, SponsorViewSet
from sponsors.queries.exports import Row, call_rows, entry_rows

_KINDS = {"calls": call_rows, "entries": entry_rows}
_MONTH = re.compile(r"(20\d\d)-(0[1-9]|1[0-2])", re.ASCII)
_DESCRIPTION = """
`entries` lists every change of the balance in the month (UTC). `calls` lists the calls accepted in the month, with the
credits that each has cost the sponsor or still holds; a charged call names its `entry`. User ids are pseudonyms, which
reveal no profile.
""".strip()


class ExportViewSet(SponsorViewSet):
    @extend_schema(
        operation_id="sponsorExport",
        tags=["sponsors"],
        summary="Export a month as CSV",
        description=_DESCRIPTION,
        parameters=[
            OpenApiParameter("kind", str, required=True, enum=list(_KINDS), description="What to export."),
            OpenApiParameter("month", str, required=True, description="A month such as 2026-11, in UTC."),
        ],
        responses={
            (200, "text/csv"): OpenApiResponse(OpenApiTypes.STR, description="Headings and rows."),
            **problem_responses(InvalidRequest, *FAULTS),
        },
    )
    @action(detail=False)
    def export(self, request: Request, name: str) -> StreamingHttpResponse:
        kind, month = request.query_params.get("kind", ""), request.query_params.get("month", "")
        parts = _MONTH.fullmatch(month)
        if kind not in _KINDS or parts is None:
            faults = {"kind": ["Send calls or entries."], "month": ["Send a month such as 2026-11."]}
            raise serializers.ValidationError(faults)
        since, until = _bounds(int(parts[1]), int(parts[2]))
        rows = _KINDS[kind](self.access.sponsor, since=since, until=until)
        response = StreamingHttpResponse(
            _lines(rows), content_type="text/csv; charset=utf-8", headers=PRIVATE
        )
        response.reader = f"sponsor {self.access.sponsor.pk}"  # type: ignore[attr-defined]
        response["Content-Disposition"] = f'attachment; filename="{name}-{month}-{kind}.csv"'
        return response


def _bounds(year: int, month: int) -> tuple[datetime, datetime]:
    following = (year + 1, 1) if month == 12 else (year, month + 1)
    return datetime(year, month, 1, tzinfo=UTC), datetime(*following, 1, tzinfo=UTC)


def _lines(rows: Iterator[Row]) -> Iterator[str]:
    for row in rows:
        line = io.StringIO()
        csv.writer(line).writerow(row)
        yield line.getvalue()
