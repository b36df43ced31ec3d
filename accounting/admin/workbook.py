"""
The workbook of a month: a sheet about the month, then one for each table, with totals as formulas.

Spreadsheets calculate with 15 digits, and gas has 18 decimals. So a workbook has gas in two columns, both numbers whose
sums are exact: coins down to the billionth, and the rest in wei.
"""

import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime
from decimal import ROUND_FLOOR, Decimal
from typing import IO, Any

from xlsxwriter import Workbook
from xlsxwriter.utility import xl_col_to_name
from xlsxwriter.worksheet import Worksheet

from accounting.models import Month
from accounting.services.exports import Table, Value
from accounting.services.figures import WEI
from accounting.services.sheets import COUNT, CREDITS, MONEY, PERSON, PRICE, TEXT
from accounting.services.sheets import WEI as GAS
from gateway.admin.exports import harmless

_REST, _DAY = "rest", "day"
_FORMATS = {
    COUNT: "0",
    CREDITS: "#,##0",
    MONEY: "#,##0.00",
    PRICE: "#,##0.00000000",
    GAS: "#,##0.000000000",
    _REST: "#,##0",
    _DAY: "yyyy-mm-dd",
}
_BILLIONTH = Decimal(1).scaleb(-9)
# Numbers that are names, or prices, have no sum.
_WITHOUT_SUM = {TEXT, PERSON, PRICE}
_USER = "user"
# The last row of the table of credits is the sum of the others.
_BALANCE = "balance"
_WIDTH, _WIDE = 18, 70


def workbook(month: Month, tables: Iterable[Table], about: Iterable[tuple[str, object]]) -> IO[bytes]:
    """Return the workbook in an open temporary file, positioned at its start; closing deletes it."""
    target = tempfile.TemporaryFile()  # noqa: SIM115 - the response closes it
    # With constant_memory, the library writes each row to disk when the next one begins.
    with Workbook(target, {"constant_memory": True, "default_date_format": "yyyy-mm-dd hh:mm"}) as book:
        book.set_properties({"title": f"Month {month}", "keywords": month.digest})
        formats = {kind: book.add_format({"num_format": text}) for kind, text in _FORMATS.items()}
        bold = book.add_format({"bold": True})
        _write_about(book.add_worksheet("month"), about, bold)
        for table in tables:
            _Sheet(book.add_worksheet(table.name), table, formats, bold).write()
    target.seek(0)
    return target


def _write_about(sheet: Worksheet, about: Iterable[tuple[str, object]], bold: Any) -> None:
    sheet.set_column(0, 0, _WIDTH * 2)
    sheet.set_column(1, 1, _WIDE)
    for line, (title, value) in enumerate(about):
        sheet.write_string(line, 0, title, bold)
        if isinstance(value, datetime):
            sheet.write_datetime(line, 1, value.astimezone(UTC).replace(tzinfo=None))
        elif isinstance(value, int | Decimal):
            sheet.write_number(line, 1, value)
        else:
            sheet.write_string(line, 1, harmless(str(value)))


class _Sheet:
    """One table, whose gas takes two columns."""

    def __init__(self, sheet: Worksheet, table: Table, formats: dict[str, Any], bold: Any) -> None:
        self._sheet, self._table, self._formats, self._bold = sheet, table, formats, bold
        pairs = list(zip(table.titles, table.kinds, strict=True))
        self._columns = [
            column
            for title, kind in pairs
            for column in (
                [(f"{title}, coins", GAS), (f"{title}, rest in wei", _REST)]
                if kind == GAS
                else [(title, kind)]
            )
        ]
        self._by_currency = "currency" in table.titles
        # Amounts of different coins have no sum.
        self._has_coins = "coin" in table.titles
        self._sums: dict[str, Counter[int]] = {}
        self._line = 0

    def write(self) -> None:
        """Write the headings, the rows, and a total for each currency, or one of the whole table."""
        self._sheet.freeze_panes(1, 0)
        self._sheet.set_column(0, len(self._columns) - 1, _WIDTH)
        for place, (title, _) in enumerate(self._columns):
            self._sheet.write_string(0, place, title, self._bold)
        for row in self._table.rows:
            if row[0] != _BALANCE:
                self._write_row(list(self._split(row)))
        last = self._line
        for name in self._sums:
            self._line += 1
            self._write_total(name, last)

    def _split(self, row: list[Value]) -> Iterator[Value]:
        for value, kind in zip(row, self._table.kinds, strict=True):
            if kind != GAS:
                yield value
                continue
            coins = Decimal(value).quantize(_BILLIONTH, ROUND_FLOOR)
            yield from (coins, int((Decimal(value) - coins) * WEI))

    def _write_row(self, row: list[Value]) -> None:
        self._line += 1
        titles = [title for title, _ in self._columns]
        name = str(row[titles.index("currency")]) if self._by_currency else ""
        sums = self._sums.setdefault(name, Counter())
        for place, ((title, kind), value) in enumerate(zip(self._columns, row, strict=True)):
            if isinstance(value, str):
                self._write_text(place, title, value)
                continue
            self._sheet.write_number(self._line, place, value, self._formats[kind])
            is_of_coins = self._has_coins and kind in {GAS, _REST}
            if kind not in _WITHOUT_SUM and title != _USER and not is_of_coins:
                sums[place] += value  # type: ignore[assignment]

    def _write_text(self, place: int, title: str, value: str) -> None:
        if title == _DAY:
            day = datetime.combine(date.fromisoformat(value), datetime.min.time())
            self._sheet.write_datetime(self._line, place, day, self._formats[_DAY])
        elif value:
            self._sheet.write_string(self._line, place, harmless(value))

    def _write_total(self, name: str, last: int) -> None:
        is_balance = self._table.name == "credits"
        self._sheet.write_string(
            self._line, 0, _BALANCE if is_balance else f"total {name}".strip(), self._bold
        )
        titles = [title for title, _ in self._columns]
        for place, value in sorted(self._sums[name].items()):
            cells = self._cells(place, last)
            formula = f"=SUM({cells})"
            if self._by_currency:
                formula = f'=SUMIF({self._cells(titles.index("currency"), last)},"{name}",{cells})'
            self._sheet.write_formula(
                self._line, place, formula, self._formats[self._columns[place][1]], float(value)
            )

    def _cells(self, place: int, last: int) -> str:
        column = xl_col_to_name(place)
        return f"${column}$2:${column}${last + 1}"
