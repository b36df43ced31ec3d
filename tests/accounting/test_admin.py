"""Finance at the admin: rates are imported, a month is prepared, exported and closed by two persons."""

import csv
import io
import zipfile
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.urls import reverse
from django.utils import timezone

from accounting.errors import MonthNotReady
from accounting.models import CoinRate, Month
from accounting.services import closing
from gateway.chain.config import home
from tests.accounting.timeline import months
from tests.accounting.workbooks import cells_of_book
from tests.accounting.world import World
from tests.database import tamper
from tests.fakes.billing import FakeBilling
from tests.staff import approve, browser_of, confirm, member, messages_of

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("short_sidebar")]
_MONTH, _RATE = "accounting_month", "accounting_coinrate"


@pytest.fixture
def january(stripe: FakeBilling) -> datetime:
    """A month with a payment, a call and a refund; return its beginning."""
    world = World(stripe, 1)
    begins, ends = months(stripe.now(), 1)
    payer = world.payers[0]
    with world.dated():
        payer.upsert(2_550)
    world.deliver()
    with world.dated():
        world.call(payer)
        stripe.refund(payer.payout.stripe_payment_intent_id, 50)
        world.deliver()
    world.jump_to(ends + timedelta(hours=30))
    return begins


def test_the_books_may_begin_with_the_month_of_the_oldest_entry_and_not_before(january: datetime) -> None:
    """Entries are not always numbered in the order of their times: a demo posts weeks at once."""
    before = date(january.year - 1, 12, 1)
    with pytest.raises(MonthNotReady, match="no credits"):
        closing.request_sheets(begins_on=before, now=timezone.now())
    assert not Month.objects.exists()
    tamper(
        "UPDATE credits_entry SET created_at = %s WHERE id = (SELECT max(id) FROM credits_entry)",
        january - timedelta(seconds=1),
    )
    assert closing.request_sheets(begins_on=before, now=timezone.now()).begins_on == before


def _rows(body: bytes, name: str) -> list[dict[str, str]]:
    (titles, *rows) = _files(body)[name]
    return [dict(zip(titles, row, strict=True)) for row in rows]


def _files(body: bytes) -> dict[str, list[list[str]]]:
    """Return the tables of an archive of CSV files."""
    with zipfile.ZipFile(io.BytesIO(body)) as archive:
        return {
            name.removesuffix(".csv"): list(csv.reader(io.StringIO(archive.read(name).decode("utf-8-sig"))))
            for name in archive.namelist()
        }


def test_a_month_is_prepared_exported_and_closed_by_two_staff_members(january: datetime) -> None:
    finance = browser_of(member("finance"))
    confirm(finance, _MONTH, "prepare", month=f"{january:%Y-%m}")
    closing.prepare_waiting(now=timezone.now())
    month = Month.objects.get()
    assert any("Rates of the coin are missing" in problem for problem in month.problems)
    page: Any = finance.get(reverse(f"admin:{_MONTH}_change", args=[month.pk]))
    assert "Rates of the coin are missing" in page.content.decode()
    assert "Close the month" not in [action["label"] for action in page.context["staff_actions"]]

    lines = "\n".join(f"{january:%Y-%m}-{day:02},usd,1.25" for day in range(1, 32))
    assert f"31 rates are stored. A worker prepares {january:%Y-%m} again." in messages_of(
        confirm(finance, _RATE, "import", rates=f"day,currency,price\n{lines}")
    )
    assert closing.prepare_waiting(now=timezone.now()) == 1
    month.refresh_from_db()
    assert month.problems == []

    book, files = (
        b"".join(finance.get(reverse(f"admin:{_MONTH}_{kind}", args=[month.pk])).streaming_content)  # type: ignore[attr-defined]
        for kind in ("xlsx", "csv")
    )
    tables = _files(files)
    assert tables.keys() >= {"liability", "payouts", "charges", "sources", "people", "movements"}
    assert [name for name, _ in cells_of_book(book)] == ["month", *tables]
    (owed,) = _rows(files, "liability")
    assert owed["collected"] == "25.50"
    assert Decimal(owed["returned"]) == Decimal("-0.50")
    assert sum(
        Decimal(value) for name, value in owed.items() if name not in {"currency", "closing"}
    ) == Decimal(owed["closing"])
    # The call may spend credits of two sources, or leave gas that nobody was charged for.
    [profile] = {row["profile"] for row in _rows(files, "people") if row["user"]}
    assert profile.startswith("0x")
    assert LogEntry.objects.filter(change_message__contains="export csv").count() == 1

    assert "waits for a second person" in messages_of(confirm(finance, _MONTH, "close", month))
    assert Month.objects.get().status == "open"
    approve("operations")
    assert Month.objects.get().status == "closed"
    assert CoinRate.objects.count() == 31


def test_an_erased_person_has_no_name_in_a_closed_month(january: datetime) -> None:
    closing.request_sheets(begins_on=january.date(), now=timezone.now())
    closing.prepare_waiting(now=timezone.now())
    month = Month.objects.get()

    stored = str([sheet.rows for sheet in month.sheets.all()])

    assert "0x" not in stored


@pytest.mark.parametrize(
    "lines",
    [
        "",
        "2025-01-01;usd;1",
        "2025-13-01,usd,1",
        "2025-01-01,xyz,1",
        "2025-01-01,usd,0",
        "2025-01-01,usd,-1",
        "2025-01-01,usd,1,ABC",
        "2025-01-01,usd,1,LYX,1",
        "x",
    ],
)
def test_an_invalid_rate_is_refused_with_its_line_number(lines: str) -> None:
    response: Any = confirm(browser_of(member("finance")), _RATE, "import", rates=lines)

    assert response.context["form"].errors["rates"]
    assert not CoinRate.objects.exists()


def test_a_month_without_credits_or_in_the_future_is_not_prepared(january: datetime) -> None:
    finance = browser_of(member("finance"))
    for begins in (date(2020, 1, 1), date(2099, 1, 1)):
        result = messages_of(confirm(finance, _MONTH, "prepare", month=f"{begins:%Y-%m}"))
        assert "not ready" in result
    assert not Month.objects.exists()


def test_a_month_that_was_prepared_again_takes_a_new_request(january: datetime) -> None:
    finance = browser_of(member("finance"))
    day = january.date()
    while day < date(2025, 2, 1):
        CoinRate.objects.create(day=day, coin=home().currency, currency="usd", price=1)
        day += timedelta(days=1)
    confirm(finance, _MONTH, "prepare", month=f"{january:%Y-%m}")
    closing.prepare_waiting(now=timezone.now())
    confirm(finance, _MONTH, "close", Month.objects.get())
    CoinRate.objects.filter(day=january.date()).update(price=2)
    confirm(finance, _MONTH, "prepare_again", Month.objects.get())
    closing.prepare_waiting(now=timezone.now())

    assert "outdated" in approve("operations")
    assert Month.objects.get().status == "open"
