"""Long lists, page by page, newest first."""

import re
from typing import Any

from rest_framework import exceptions, serializers
from rest_framework.pagination import CursorPagination
from rest_framework.request import Request

_FAULT = "Send a whole number from 1 to {most}."
_LIMIT = re.compile(r"[0-9]{1,3}", re.ASCII)
# What a bigint column holds; nothing else was ever a row's place in a list.
_POSITION = re.compile(r"[0-9]{1,18}", re.ASCII)


class NewestFirst(CursorPagination):
    """
    Pages of `limit` rows (1 to 500, 100 unless told) that neither repeat nor lose a row while new ones arrive.

    Views set `ordering` to a unique column of whole numbers.

    Raises:
        ValidationError: `limit` or `cursor` is not one that this list has answered.
    """

    page_size = 100
    max_page_size = 500
    page_size_query_param = "limit"

    def get_page_size(self, request: Request) -> int:
        asked = request.query_params.get("limit", str(self.page_size))
        if not (_LIMIT.fullmatch(asked) and 1 <= int(asked) <= self.max_page_size):
            raise serializers.ValidationError({"limit": [_FAULT.format(most=self.max_page_size)]})
        return int(asked)

    def decode_cursor(self, request: Request) -> Any:
        refusal = serializers.ValidationError({"cursor": ["Follow `next` or `previous`."]})
        try:
            cursor = super().decode_cursor(request)
        except exceptions.NotFound as error:
            raise refusal from error
        if (
            cursor is not None
            and cursor.position is not None
            and not _POSITION.fullmatch(str(cursor.position))
        ):
            raise refusal
        return cursor
