"""Files are written as the rows come, in a memory that does not grow with them."""

import csv
import io
import re
import tracemalloc
import zipfile
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import IO

import pytest

from gateway.admin.exports import Cell, csv_lines, xlsx_file

_FEW, _MANY = 500, 5_000


def _rows(count: int) -> Iterator[list[Cell]]:
    yield ["id", "text", "amount"]
    for number in range(count):
        yield [number, f'row {number}, "quoted"', -number]


def _sheets(file: IO[bytes]) -> list[str]:
    with zipfile.ZipFile(file) as book:
        names = sorted(name for name in book.namelist() if name.startswith("xl/worksheets/sheet"))
        return [book.read(name).decode() for name in names]


def _peak(work: Callable[[], object]) -> int:
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_a_csv_file_reads_back_as_it_was_written() -> None:
    text = b"".join(csv_lines(_rows(3))).decode("utf-8-sig")

    assert list(csv.reader(io.StringIO(text))) == [[str(cell) for cell in row] for row in _rows(3)]


def test_the_first_line_is_there_before_the_second_row_is_read() -> None:
    read: list[int] = []

    def rows() -> Iterator[list[Cell]]:
        for number in range(1_000_000):
            read.append(number)
            yield [number]

    lines = csv_lines(rows())

    assert [next(lines) for _ in range(3)][1:] == [b"0\r\n", b"1\r\n"]
    assert read == [0, 1]


@pytest.mark.parametrize(
    "write",
    [lambda count: sum(map(len, csv_lines(_rows(count)))), lambda count: xlsx_file(_rows(count)).close()],
    ids=["csv", "xlsx"],
)
def test_ten_times_the_rows_take_no_more_memory(write: Callable[[int], object]) -> None:
    write(1)
    few, many = _peak(lambda: write(_FEW)), _peak(lambda: write(_MANY))

    assert many < few + 200_000


def test_a_workbook_keeps_numbers_and_writes_no_formula() -> None:
    rows: list[list[Cell]] = [["amount", "text"], [-5, "'=1+1"], [Decimal("2.50"), "=1+1"]]

    with xlsx_file(iter(rows)) as file:
        [sheet] = _sheets(file)

    assert "<f>" not in sheet
    assert re.findall(r"<v>([^<]*)</v>", sheet) == ["-5", "2.50"]
    assert "<t>'=1+1</t>" in sheet


def test_a_number_of_more_digits_than_a_spreadsheet_knows_is_a_text() -> None:
    rows: list[list[Cell]] = [["wei"], [123_456_789_012_345], [1_234_567_890_123_456]]

    with xlsx_file(iter(rows)) as file:
        [sheet] = _sheets(file)

    assert re.findall(r"<v>([^<]*)</v>", sheet) == ["123456789012345"]
    assert "<t>1234567890123456</t>" in sheet


def test_rows_beyond_a_full_sheet_go_to_the_next_one_below_the_headings() -> None:
    with xlsx_file(_rows(5), sheet_rows=2) as file:
        sheets = _sheets(file)

    assert [sheet.count("<row") for sheet in sheets] == [3, 3, 2]
    assert all("<t>amount</t>" in sheet for sheet in sheets)


def test_a_list_without_rows_is_a_file_with_headings() -> None:
    with xlsx_file(_rows(0)) as file:
        [sheet] = _sheets(file)

    assert sheet.count("<row") == 1
