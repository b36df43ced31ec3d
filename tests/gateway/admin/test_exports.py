"""Lists that finance takes away: which rows, who may, and the audit entry."""

import csv
import io
import json
import secrets
from collections.abc import Iterable
from datetime import datetime
from decimal import Decimal
from typing import cast

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission
from django.db import connection
from django.http.response import HttpResponseBase
from django.test import Client
from django.test.utils import CaptureQueriesContext

from credits.models import EntrySource
from credits.services import entries
from gateway.admin.exports import Column, cells_of, csv_lines
from tests.database import tamper
from tests.factories import UserFactory
from tests.staff import log_in_staff
from users.models import User

pytestmark = pytest.mark.django_db
LISTS = {
    "credits.creditentry": "/admin/credits/creditentry/",
    "payments.payout": "/admin/payments/payout/",
    "payments.refund": "/admin/payments/refund/",
    "payments.clawback": "/admin/payments/clawback/",
    "credits.creditaccount": "/admin/credits/creditaccount/",
    "relay.relaytransaction": "/admin/relay/relaytransaction/",
    "relay.attempt": "/admin/relay/attempt/",
}
ENTRIES = LISTS["credits.creditentry"]


def _earn(user: User, credits: int, source: EntrySource = EntrySource.SURVEYS) -> None:
    entries.grant(user=user, credits=credits, source=source, key=f"test:{secrets.token_hex(8)}")


def _table(answer: HttpResponseBase) -> list[dict[str, str]]:
    content = b"".join(cast("Iterable[bytes]", answer))
    return list(csv.DictReader(io.StringIO(content.decode("utf-8-sig"))))


def _allow(user: User, *names: str) -> None:
    codenames = [name.split(".")[1] for name in names]
    user.user_permissions.set(Permission.objects.filter(codename__in=codenames))


def test_the_ledger_is_given_whole_newest_first(client: Client) -> None:
    log_in_staff(client)
    owner = UserFactory.create()
    for amount in (5, 7, 11):
        _earn(owner, amount)

    response = client.get(f"{ENTRIES}export/csv/")

    assert response.headers["Content-Type"].startswith("text/csv")
    assert "attachment" in response.headers["Content-Disposition"]
    assert [(row["amount"], row["profile"]) for row in _table(response)] == [
        (amount, owner.profile_address) for amount in ("11", "7", "5")
    ]


def test_the_filters_and_the_search_of_the_list_hold(client: Client) -> None:
    log_in_staff(client)
    one, other = UserFactory.create(), UserFactory.create()
    _earn(one, 3)
    _earn(one, 4, EntrySource.OFFERWALL)
    _earn(other, 5)
    query = {"q": str(one.profile_address), "source__exact": EntrySource.SURVEYS}

    page = client.get(ENTRIES, query).content.decode()
    response = client.get(f"{ENTRIES}export/csv/", query)

    assert [row["amount"] for row in _table(response)] == ["3"]
    assert f"export/csv/?q={one.profile_address}&amp;source__exact=SURVEYS" in page


@pytest.mark.parametrize("path", LISTS.values())
@pytest.mark.parametrize("kind", ["csv", "xlsx"])
def test_every_list_is_given_in_both_forms(client: Client, path: str, kind: str) -> None:
    log_in_staff(client)

    response = client.get(f"{path}export/{kind}/")

    assert response.status_code == 200
    content = b"".join(cast("Iterable[bytes]", response))
    assert content.startswith(b"PK" if kind == "xlsx" else b"\xef\xbb\xbf")


@pytest.mark.parametrize("label", LISTS)
def test_view_permission_alone_does_not_allow_an_export(client: Client, label: str) -> None:
    app, model = label.split(".")
    _allow(log_in_staff(client, is_superuser=False), f"{app}.view_{model}")
    before = LogEntry.objects.count()

    page = client.get(LISTS[label])
    refused = [client.get(f"{LISTS[label]}export/{kind}/").status_code for kind in ("csv", "xlsx")]

    assert page.status_code == 200
    assert "export/csv/" not in page.content.decode()
    assert refused == [403, 403]
    assert LogEntry.objects.count() == before


@pytest.mark.parametrize("label", LISTS)
def test_an_export_requires_view_permission(client: Client, label: str) -> None:
    app, model = label.split(".")
    _allow(log_in_staff(client, is_superuser=False), f"{app}.export_{model}")

    assert client.get(f"{LISTS[label]}export/csv/").status_code == 403


def test_an_export_is_written_down_with_its_filters(client: Client) -> None:
    person = log_in_staff(client)

    client.get(f"{ENTRIES}export/csv/", {"source__exact": EntrySource.SURVEYS})

    entry = LogEntry.objects.get(user=person)
    [details] = json.loads(entry.change_message)
    assert (details["action"], details["changes"]) == ("export csv", {"source": ["", "SURVEYS"]})
    assert details["requestId"]


def test_a_filter_that_makes_no_sense_leads_back_to_the_list(client: Client) -> None:
    person = log_in_staff(client)

    response = client.get(f"{ENTRIES}export/csv/", {"created_at__gte": "yesterday"})

    assert (response.status_code, response.headers["Location"]) == (302, ENTRIES)
    assert not LogEntry.objects.filter(user=person).exists()


def test_another_form_does_not_exist(client: Client) -> None:
    log_in_staff(client)

    assert client.get(f"{ENTRIES}export/pdf/").status_code == 404


def test_rows_are_read_while_they_are_sent(client: Client) -> None:
    log_in_staff(client)
    owner = UserFactory.create()
    for amount in range(1, 4):
        _earn(owner, amount)

    response = client.get(f"{ENTRIES}export/csv/")
    with CaptureQueriesContext(connection) as queries:
        rows = _table(response)

    assert len(rows) == 3
    assert len(queries) == 1


def test_a_reason_that_is_a_formula_arrives_as_a_text(client: Client) -> None:
    person = log_in_staff(client)
    owner = UserFactory.create()
    entries.adjust(user=owner, credits=5, actor=person, reason="=1+1", key=secrets.token_hex(8))

    [row] = _table(client.get(f"{ENTRIES}export/csv/"))

    assert (row["reason"], row["amount"]) == ("'=1+1", "5")


def test_a_list_and_its_export_have_the_requested_days(client: Client) -> None:
    log_in_staff(client)
    owner = UserFactory.create()
    for place, day in enumerate(("2026-01-31", "2026-02-01", "2026-02-28", "2026-03-01"), 1):
        _earn(owner, place)
        moment = datetime.fromisoformat(f"{day}T{'23:59:59' if day.endswith('28') else '00:00:00'}+00:00")
        tamper("UPDATE credits_entry SET created_at = %s WHERE amount = %s", moment, place)
    query = {
        "created_at__from_day": "2026-02-01",
        "created_at__to_day": "2026-02-28",
        "q": str(owner.profile_address),
    }

    page = client.get(ENTRIES, query)
    response = client.get(f"{ENTRIES}export/csv/", query)

    assert [row["amount"] for row in _table(response)] == ["3", "2"]
    assert page.content.decode().count('type="date"') == 2
    assert f'name="q" value="{owner.profile_address}"' in page.content.decode()
    assert len(_table(client.get(f"{ENTRIES}export/csv/", {"created_at__to_day": "2026-01-31"}))) == 1


def test_days_that_are_none_are_ignored_with_a_notice(client: Client) -> None:
    log_in_staff(client)

    assert client.get(ENTRIES, {"created_at__from_day": "soon"}).headers["Location"] == f"{ENTRIES}?e=1"


def test_exports_have_money_in_major_units() -> None:
    rows = UserFactory._meta.model.objects.filter(pk=UserFactory.create().pk)

    (_, row) = cells_of(rows, [Column("amount", "pk", is_money=True)])

    assert row == [Decimal(rows.get().pk).scaleb(-2)]
    assert list(csv_lines([[Decimal(2550).scaleb(-2)]]))[-1] == b"25.50\r\n"
