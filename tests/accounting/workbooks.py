"""The cells of a workbook as a spreadsheet program reads them."""

import html
import io
import re
import zipfile
from decimal import Decimal
from typing import NamedTuple

_CELL = re.compile(r'<c r="([A-Z]+)(\d+)"([^>]*)>(.*?)</c>')


class Cell(NamedTuple):
    """A text, or a number with its format and formula."""

    text: str = ""
    number: Decimal | None = None
    form: str = ""
    formula: str = ""


def cells_of_book(body: bytes) -> list[tuple[str, dict[tuple[str, int], Cell]]]:
    """Return the name and the cells of each sheet, by column and line."""
    with zipfile.ZipFile(io.BytesIO(body)) as book:
        names = re.findall(r'<sheet name="([^"]+)"', book.read("xl/workbook.xml").decode())
        styles = _formats(book.read("xl/styles.xml").decode())
        parts = [book.read(f"xl/worksheets/sheet{place}.xml").decode() for place in range(1, len(names) + 1)]
    return [
        (
            name,
            {
                (column, int(line)): _cell(options, inside, styles)
                for column, line, options, inside in _CELL.findall(part)
            },
        )
        for name, part in zip(names, parts, strict=True)
    ]


def _formats(styles: str) -> list[str]:
    """Return the number format of each style."""
    codes = {
        number: html.unescape(code)
        for number, code in re.findall(r'<numFmt numFmtId="(\d+)" formatCode="([^"]*)"', styles)
    }
    own = re.findall(r"<cellXfs.*?</cellXfs>", styles)[0]
    return [codes.get(number, number) for number in re.findall(r'<xf numFmtId="(\d+)"', own)]


def _cell(options: str, inside: str, styles: list[str]) -> Cell:
    if 't="inlineStr"' in options:
        return Cell(text=html.unescape("".join(re.findall(r"<t[^>]*>(.*?)</t>", inside))))
    formula, value = re.search(r"<f>(.*?)</f>", inside), re.search(r"<v>(.*?)</v>", inside)
    style = re.search(r's="(\d+)"', options)
    return Cell(
        number=Decimal(value[1]) if value else None,
        form=styles[int(style[1])] if style else "",
        formula=html.unescape(formula[1]) if formula else "",
    )
