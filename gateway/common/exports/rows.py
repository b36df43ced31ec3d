"""The rows of a query, newest first, read one page at a time."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet

from gateway.common.exports.cells import Cell, cell_of

PAGE_ROWS = 2_000


@dataclass(frozen=True)
class Column:
    """A heading, and the path to its field."""

    heading: str
    path: str


def cells_of(
    rows: QuerySet[Any], columns: Sequence[Column], *, page_rows: int = PAGE_ROWS
) -> Iterator[list[Cell]]:
    """
    Yield the headings, then the cells of each row by descending primary key.

    Each page is its own query that begins below the last key: no cursor and no transaction
    stays open while a slow browser reads, and only one page is in memory. Rows added
    meanwhile are not included.
    """
    yield [column.heading for column in columns]
    paths = [column.path for column in columns]
    below = rows.order_by("-pk").values_list("pk", *paths)
    page = list(below[:page_rows])
    while page:
        for _, *values in page:
            yield [cell_of(value) for value in values]
        page = list(below.filter(pk__lt=page[-1][0])[:page_rows]) if len(page) == page_rows else []
