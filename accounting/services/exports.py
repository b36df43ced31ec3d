"""The sheets of a month as tables of plain values: money in major units, gas in coins, people by their profile."""

from collections.abc import Iterator
from decimal import Decimal
from typing import Any, NamedTuple

from accounting.models import Month, MonthSheet
from accounting.services.figures import WEI
from accounting.services.sheets import MONEY, PERSON, PRICE
from accounting.services.sheets import WEI as GAS
from users.models import User

Value = str | int | Decimal


class Table(NamedTuple):
    name: str
    titles: list[str]
    kinds: list[str]
    rows: Iterator[list[Value]]


def tables(month: Month) -> Iterator[Table]:
    """Yield each sheet; a person who was erased has no name."""
    for first in MonthSheet.objects.filter(month=month, part=0).order_by("place").defer("rows"):
        titles, kinds = ([column[place] for column in first.columns] for place in (0, 1))
        yield Table(first.name, titles, kinds, _rows(first, kinds))


def _rows(first: MonthSheet, kinds: list[str]) -> Iterator[list[Value]]:
    parts = MonthSheet.objects.filter(month=first.month_id, place=first.place).order_by("part")
    for rows in parts.values_list("rows", flat=True).iterator(chunk_size=5):
        people = _profiles(rows, kinds)
        for row in rows:
            yield [_value(cell, kind, people) for cell, kind in zip(row, kinds, strict=True)]


def _profiles(rows: list[list[Any]], kinds: list[str]) -> dict[int, str | None]:
    if PERSON not in kinds:
        return {}
    ids = {row[kinds.index(PERSON)] for row in rows} - {None}
    return dict(User.objects.filter(pk__in=ids).values_list("pk", "profile_address"))


def _value(cell: Any, kind: str, people: dict[int, str | None]) -> Value:
    if cell is None:
        return ""
    if kind == MONEY:
        return Decimal(cell).scaleb(-2)
    if kind == GAS:
        return Decimal(cell) / WEI
    if kind == PRICE:
        return Decimal(cell)
    if kind == PERSON:
        return people.get(cell) or ""
    return cell  # type: ignore[no-any-return]
