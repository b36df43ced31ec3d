"""The sheets of a month as tables of plain values: money in major units, gas in coins, people by their profile."""

from collections.abc import Iterator
from datetime import UTC, datetime, time
from decimal import Decimal
from typing import Any, NamedTuple

from django.conf import settings

from accounting.models import Month, MonthSheet
from accounting.queries import rates
from accounting.services.figures import WEI
from accounting.services.sheets import MONEY, PERSON, PRICE
from accounting.services.sheets import WEI as GAS
from payments.models import PayoutRate
from users.models import User

Value = str | int | Decimal


class Table(NamedTuple):
    name: str
    titles: list[str]
    kinds: list[str]
    rows: Iterator[list[Value]]


def about(month: Month) -> Iterator[tuple[str, object]]:
    """Yield what identifies the month, who closed it, and the rates that it was computed with."""
    request = month.approval
    yield "month", str(month)
    yield "status", month.get_status_display()
    yield "everything before", month.figures_until or ""
    yield "prepared at", month.prepared_at or ""
    yield "closed at", month.closed_at or ""
    if request is not None:
        yield "requested by", str(request.requested_by)
        yield "approved by", str(request.decided_by)
    yield "digest (SHA-256 of the tables)", month.digest
    yield "version of the rule of lots", month.rule_version
    yield "before it can be closed", " ".join(month.problems) or "nothing"
    yield "differences from Stripe", month.differences or "none"
    yield "reason of the differences", month.explanation
    begins = datetime.combine(month.begins_on, time(), UTC)
    for currency in settings.BILLING_CURRENCIES:
        if rate := PayoutRate.objects.in_force(currency=currency, at=begins):
            yield f"credits for 1.00 {currency.upper()}, when the month began", rate.credits_per_major_unit
    for (day, currency), price in sorted(rates(since=month.begins_on, until=month.ends_on).items()):
        yield f"price of one coin, {day}, {currency.upper()}", price


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
