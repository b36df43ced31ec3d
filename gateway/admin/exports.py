"""
Export a filtered list of the admin to a file: CSV is streamed, XLSX is written to a temporary file.

Rows are read page by page. Numbers stay numbers, and spreadsheets never treat text as a formula.
"""

import csv
import io
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import IO, Any, ClassVar

from django.contrib.admin.options import IncorrectLookupParameters
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import FileResponse, Http404, HttpRequest, HttpResponseRedirect, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.urls import path
from xlsxwriter import Workbook
from xlsxwriter.worksheet import Worksheet

from gateway.admin.mixins import AdminMixin, staff_of
from gateway.common import clock
from gateway.staff import audit

Cell = str | int | Decimal

# Spreadsheets treat text that begins like this as a formula, which could leak other cells.
_BEGINS_A_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


def cell_of(value: object) -> Cell:
    """Return the value for a cell: times in ISO 8601 and UTC, booleans as yes and no, None as an empty text."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | Decimal):
        return value
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="seconds") if value.tzinfo else value.isoformat()
    return harmless("" if value is None else str(value))


def harmless(text: str) -> str:
    """Return the text, with an apostrophe in front if a spreadsheet would treat it as a formula."""
    return f"'{text}" if text.lstrip(" ").startswith(_BEGINS_A_FORMULA) else text


PAGE_ROWS = 2_000


@dataclass(frozen=True)
class Column:
    """A column of an export. Money is stored in minor units (100 per major unit) and exported in major units."""

    heading: str
    path: str
    is_money: bool = False

    def cell(self, value: object) -> Cell:
        return Decimal(value).scaleb(-2) if self.is_money and isinstance(value, int) else cell_of(value)


def cells_of(
    rows: QuerySet[Any], columns: Sequence[Column], *, page_rows: int = PAGE_ROWS
) -> Iterator[list[Cell]]:
    """
    Yield the headings, then the cells of each row by descending primary key.

    Each page is a separate query for keys below the last one, so no cursor or transaction stays open while a slow
    browser reads, and only one page is in memory. Rows added after the start are not included.
    """
    yield [column.heading for column in columns]
    paths = [column.path for column in columns]
    below = rows.order_by("-pk").values_list("pk", *paths)
    page = list(below[:page_rows])
    while page:
        for _, *values in page:
            yield [column.cell(value) for column, value in zip(columns, values, strict=True)]
        page = list(below.filter(pk__lt=page[-1][0])[:page_rows]) if len(page) == page_rows else []


# A sheet has at most 1,048,576 rows; further rows go to another sheet with the same headings.
SHEET_ROWS = 1_000_000
# Spreadsheets calculate with 15 digits and silently round longer numbers, so those are written as text.
_EXACT_DIGITS = 15
# The width of a column in digits, enough for amounts and most headings.
_WIDTH = 18


def csv_lines(rows: Iterable[list[Cell]]) -> Iterator[bytes]:
    """Yield the lines of a CSV file in UTF-8, with the byte order mark that spreadsheets need."""
    yield b"\xef\xbb\xbf"
    line = io.StringIO()
    writer = csv.writer(line)
    for row in rows:
        writer.writerow(row)
        yield line.getvalue().encode()
        line.seek(0)
        line.truncate()


def xlsx_file(rows: Iterator[list[Cell]], *, sheet_rows: int = SHEET_ROWS) -> IO[bytes]:
    """Return a workbook in an open temporary file, positioned at its start; closing deletes it."""
    target = tempfile.TemporaryFile()  # noqa: SIM115 - the response closes it
    # With constant_memory, the library writes each row to disk when the next one begins.
    with Workbook(target, {"constant_memory": True}) as book:
        headings = next(rows)
        sheet = _sheet(book, headings)
        for number, row in enumerate(rows):
            if number and number % sheet_rows == 0:
                sheet = _sheet(book, headings)
            _write(sheet, number % sheet_rows + 1, row)
    target.seek(0)
    return target


def _sheet(book: Workbook, headings: list[Cell]) -> Worksheet:
    sheet = book.add_worksheet()
    _write(sheet, 0, headings)
    sheet.freeze_panes(1, 0)
    sheet.set_column(0, len(headings) - 1, _WIDTH)
    return sheet


def _write(sheet: Worksheet, line: int, row: list[Cell]) -> None:
    for place, cell in enumerate(row):
        if isinstance(cell, str) or _digits(cell) > _EXACT_DIGITS:
            sheet.write_string(line, place, str(cell))
        else:
            sheet.write_number(line, place, cell)


def _digits(number: int | Decimal) -> int:
    return len(Decimal(number).as_tuple().digits)


_KINDS = ("csv", "xlsx")
_XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"


class Exportable(AdminMixin):
    """
    Exports `export_columns` of the list's rows, for staff who may view the list and have `export_<model>`.

    Each export is written to the audit log, with its filters, before the first byte is sent.
    """

    export_columns: ClassVar[Sequence[Column]]
    change_list_template = "admin/exported_list.html"

    def get_urls(self) -> list[Any]:
        name = f"{self.opts.app_label}_{self.opts.model_name}_export"
        export = path("export/<slug:kind>/", self.admin_site.admin_view(self.export_view), name=name)
        return [export, *super().get_urls()]

    def has_export_permission(self, request: HttpRequest) -> bool:
        permission = f"{self.opts.app_label}.export_{self.opts.model_name}"
        return self.has_view_permission(request) and request.user.has_perm(permission)

    def list_context(self, request: HttpRequest) -> dict[str, Any]:
        offered = self._links(request) if self.has_export_permission(request) else []
        return {**super().list_context(request), "exports": offered}

    def export_view(self, request: HttpRequest, kind: str) -> HttpResponseBase:
        if not self.has_export_permission(request):
            raise PermissionDenied
        if kind not in _KINDS:
            raise Http404
        try:
            rows = self.get_changelist_instance(request).get_queryset(request)
        except IncorrectLookupParameters:
            return HttpResponseRedirect(self.page_url("changelist"))
        self._note(request, kind)
        # A CSV file's rows are read after this function returns, so pin them to the database of the list.
        cells = cells_of(rows.using(rows.db), self.export_columns)
        name = f"{self.opts.verbose_name_plural} {clock.now():%Y-%m-%d}.{kind}".replace(" ", "-")
        if kind == "xlsx":
            return FileResponse(xlsx_file(cells), as_attachment=True, filename=name, content_type=_XLSX)
        headers = {"Content-Disposition": f'attachment; filename="{name}"'}
        return StreamingHttpResponse(
            csv_lines(cells), content_type="text/csv; charset=utf-8", headers=headers
        )

    def _note(self, request: HttpRequest, kind: str) -> None:
        rows: dict[str, tuple[str, str]] = {
            "search" if name == "q" else name.removesuffix("__exact").replace("__", " "): ("", value)
            for name, value in request.GET.dict().items()
        }
        audit.record(
            actor=staff_of(request),
            row=self.model(),
            action=f"export {kind}",
            changes=rows or {"rows": ("", "all")},
            name=str(self.opts.verbose_name_plural),
        )

    def _links(self, request: HttpRequest) -> list[dict[str, str]]:
        query = f"?{request.GET.urlencode()}" if request.GET else ""
        return [{"label": kind.upper(), "url": self.page_url("export", kind) + query} for kind in _KINDS]
