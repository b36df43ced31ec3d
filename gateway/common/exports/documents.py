"""Rows of cells as a file: CSV streamed, XLSX through a temporary file."""

import csv
import io
import tempfile
from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import IO

from xlsxwriter import Workbook
from xlsxwriter.worksheet import Worksheet

from gateway.common.exports.cells import Cell

# A sheet holds 1,048,576 rows; further rows go to the next sheet, below the headings again.
SHEET_ROWS = 1_000_000
# Spreadsheets calculate with 15 digits and silently round longer numbers.
_EXACT_DIGITS = 15


def csv_lines(rows: Iterable[list[Cell]]) -> Iterator[bytes]:
    """Yield the lines of a CSV file in UTF-8, with the mark by which spreadsheets recognise UTF-8."""
    yield b"\xef\xbb\xbf"
    line = io.StringIO()
    writer = csv.writer(line)
    for row in rows:
        writer.writerow(row)
        yield line.getvalue().encode()
        line.seek(0)
        line.truncate()


def xlsx_file(rows: Iterator[list[Cell]], *, sheet_rows: int = SHEET_ROWS) -> IO[bytes]:
    """Return a workbook in an open temporary file, at its beginning; closing deletes it."""
    target = tempfile.TemporaryFile()  # noqa: SIM115 - the answer that sends it closes it
    # With constant memory, each row goes to disk as soon as the next one begins.
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
    return sheet


def _write(sheet: Worksheet, line: int, row: list[Cell]) -> None:
    for place, cell in enumerate(row):
        if isinstance(cell, str) or _digits(cell) > _EXACT_DIGITS:
            sheet.write_string(line, place, str(cell))
        else:
            sheet.write_number(line, place, cell)


def _digits(number: int | Decimal) -> int:
    return len(Decimal(number).as_tuple().digits)
