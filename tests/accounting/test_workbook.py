"""The workbook of a month: numbers are numbers, totals are formulas, and it says what it is."""

import random
import re
import secrets
from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from django.utils import timezone

from accounting.admin.workbook import workbook
from accounting.models import Month, MonthSheet
from accounting.services.exports import about, tables
from accounting.services.sheets import COUNT, CREDITS, MONEY, PERSON, PRICE, TEXT, WEI
from tests.accounting.workbooks import Cell, cells_of_book
from tests.factories import UserFactory, make

pytestmark = pytest.mark.django_db
_LARGEST = 10**24


def _month(**sheets: tuple[list[tuple[str, str]], list[list[Any]]]) -> Month:
    month = make(
        Month,
        begins_on=date(2026, 2, 1),
        status="open",
        digest=secrets.token_hex(32),
        prepared_at=timezone.now(),
        differences="charges, USD: 2.00. payout 7",
    )
    for place, (name, (columns, rows)) in enumerate(sheets.items()):
        MonthSheet.objects.create(month=month, name=name, place=place, columns=columns, rows=rows)
    return month


def _book(month: Month) -> dict[str, dict[tuple[str, int], Cell]]:
    with workbook(month, tables(month), about(month)) as file:
        return dict(cells_of_book(file.read()))


def _sum(cells: dict[tuple[str, int], Cell], formula: str) -> Decimal:
    """Calculate a total as a spreadsheet program would, from the cells that the formula names."""
    column, first, last = re.findall(r"\$([A-Z]+)\$(\d+):\$[A-Z]+\$(\d+)", formula)[-1]
    lines = range(int(first), int(last) + 1)
    if found := re.fullmatch(r'SUMIF\(\$([A-Z]+)\$\d+:\$[A-Z]+\$\d+,"(\w+)",.*\)', formula):
        lines = [line for line in lines if cells[found[1], line].text == found[2]]  # type: ignore[assignment]
    return sum((cells[column, line].number or Decimal(0) for line in lines), Decimal(0))


def test_gas_is_numbers_whose_sums_are_the_wei_that_were_spent() -> None:
    columns = [("day", TEXT), ("currency", TEXT), ("gas", WEI), ("price of one coin", PRICE), ("cost", MONEY)]
    rows: list[list[Any]] = [
        [f"2026-02-{day:02}", currency, random.randrange(_LARGEST), "1.25", random.randint(0, 10**9)]
        for day in range(1, 29)
        for currency in ("usd", "eur")
    ]
    cells = _book(_month(gas=(columns, rows)))["gas"]
    assert [cells[name, 1].text for name in "ABCDEF"] == [
        "day", "currency", "gas, coins", "gas, rest in wei", "price of one coin", "cost",
    ]  # fmt: skip
    for line in range(2, len(rows) + 2):
        assert [cells[name, line].form for name in "ACDEF"] == [
            "yyyy-mm-dd", "#,##0.000000000", "#,##0", "#,##0.00000000", "#,##0.00",
        ]  # fmt: skip
        assert all(cells[name, line].number is not None for name in "ACDEF")
    for line, currency in ((len(rows) + 2, "usd"), (len(rows) + 3, "eur")):
        assert cells["A", line].text == f"total {currency}"
        own = [row for row in rows if row[1] == currency]
        sums = {name: _sum(cells, cells[name, line].formula) for name in "CDF"}
        assert int(sums["C"] * 10**18) + int(sums["D"]) == sum(row[2] for row in own)
        assert int(sums["F"] * 100) == sum(row[4] for row in own)
        assert all(
            abs((cells[name, line].number or 0) - sums[name]) <= abs(sums[name]) / 10**12 for name in "CDF"
        )
        assert ("E", line) not in cells


def test_amounts_of_different_coins_have_no_sum() -> None:
    columns = [("coin", TEXT), ("currency", TEXT), ("gas", WEI), ("cost", MONEY)]
    cells = _book(_month(coins=(columns, [["LYX", "usd", 10**18, 100], ["ETH", "usd", 10**17, 250]])))[
        "coins"
    ]
    assert cells["A", 4].text == "total usd"
    assert {name for name in "ABCDE" if (name, 4) in cells} == {"A", "E"}
    assert _sum(cells, cells["E", 4].formula) == Decimal("3.5")


def test_credits_end_with_their_balance_and_people_have_no_sum_of_their_numbers() -> None:
    person, given = UserFactory.create(), [random.randint(-(10**9), 10**9) for _ in range(3)]
    kinds = [[kind, value] for kind, value in zip(("paid", "given", "debt"), given, strict=True)]
    month = _month(
        credits=([("kind", TEXT), ("closing", CREDITS)], [*kinds, ["balance", sum(given)]]),
        people=(
            [("user", COUNT), ("profile", PERSON), ("currency", TEXT), ("credits used", CREDITS)],
            [[person.pk, person.pk, "usd", 7], [None, None, "usd", 5]],
        ),
        returns=([("currency", TEXT), ("refunds", MONEY)], []),
    )
    book = _book(month)
    balance = book["credits"]["B", 5]
    assert (book["credits"]["A", 5].text, balance.number) == ("balance", Decimal(sum(given)))
    assert _sum(book["credits"], balance.formula) == sum(given)
    people = book["people"]
    assert (people["A", 2].number, people["B", 2].text) == (Decimal(person.pk), str(person.profile_address))
    assert ("A", 3) not in people
    assert (people["A", 4].text, people["D", 4].number) == ("total usd", Decimal(12))
    assert sorted(book["returns"]) == [("A", 1), ("B", 1)]


def test_the_first_sheet_says_which_month_it_is_and_how_it_was_computed() -> None:
    month = _month(entries=([("source", TEXT), ("credits", CREDITS)], [["=1+1", 5]]))
    book = _book(month)
    about_month = {book["month"]["A", line].text: book["month"].get(("B", line)) for line in range(1, 13)}
    texts = {title: cell.text for title, cell in about_month.items() if cell is not None}
    assert texts["month"] == "2026-02"
    assert texts["status"] == "Can be prepared again"
    assert texts["digest (SHA-256 of the tables)"] == month.digest
    assert texts["differences from Stripe"] == month.differences
    assert any(cell.text.startswith("credits for 1.00 USD") for cell in book["month"].values())
    assert book["entries"]["A", 2].text == "'=1+1"
