"""Pagination of long lists, newest first."""

import re
from typing import Any

from rest_framework import exceptions, serializers
from rest_framework.pagination import CursorPagination
from rest_framework.request import Request

_FAULT = "Send a whole number from 1 to {most}."
_LIMIT = re.compile(r"[0-9]{1,3}", re.ASCII)
# Checked here, because the decoder ignores characters that are not Base64.
_CURSOR = re.compile(r"[A-Za-z0-9+/=]*", re.ASCII)
# The position in a cursor is a bigint.
_POSITION = re.compile(r"[0-9]{1,18}", re.ASCII)


class NewestFirst(CursorPagination):
    """
    Pages of `limit` rows (1 to 500, default 100). No row is repeated or lost while new ones arrive.

    Views set `ordering` to a unique integer column.

    Raises:
        ValidationError: `limit` is out of range, or `cursor` did not come from this list.
    """

    page_size = 100
    max_page_size = 500
    page_size_query_param = "limit"

    def get_page_size(self, request: Request) -> int:
        text = request.query_params.get("limit", str(self.page_size))
        if not (_LIMIT.fullmatch(text) and 1 <= int(text) <= self.max_page_size):
            raise serializers.ValidationError({"limit": [_FAULT.format(most=self.max_page_size)]})
        return int(text)

    def get_schema_operation_parameters(self, view: Any) -> list[dict[str, Any]]:
        """Describe `cursor` and `limit`, with the range of `limit`."""
        most, usual = self.max_page_size, self.page_size
        limit = {"type": "integer", "minimum": 1, "maximum": most, "default": usual}
        return [
            _parameter(
                self.cursor_query_param,
                "Opaque position, taken from `next` or `previous`.",
                {"type": "string"},
            ),
            _parameter("limit", "Maximum number of rows.", limit),
        ]

    def get_paginated_response_schema(self, schema: Any) -> dict[str, Any]:
        """Describe a page in OpenAPI 3.1; REST framework's own schema is 3.0, where null is not a type."""
        link = {"type": ["string", "null"], "format": "uri"}
        return {
            "type": "object",
            "required": ["next", "previous", "results"],
            "properties": {
                "next": {**link, "description": "URL of the page of older rows; null on the last page."},
                "previous": {**link, "description": "URL of the page of newer rows, or null."},
                "results": schema,
            },
        }

    def decode_cursor(self, request: Request) -> Any:
        error = serializers.ValidationError({"cursor": ["Follow `next` or `previous`."]})
        if not _CURSOR.fullmatch(request.query_params.get(self.cursor_query_param, "")):
            raise error
        try:
            cursor = super().decode_cursor(request)
        except exceptions.NotFound as not_found:
            raise error from not_found
        if (
            cursor is not None
            and cursor.position is not None
            and not _POSITION.fullmatch(str(cursor.position))
        ):
            raise error
        return cursor


def _parameter(name: str, description: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "in": "query", "required": False, "description": description, "schema": schema}
