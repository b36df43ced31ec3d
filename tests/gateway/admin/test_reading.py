"""What staff read is unmistakable: one search, times that name their zone, ids as they are written, why before what."""

import html
import re
import secrets
from datetime import UTC, datetime
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.auth.models import Group
from django.db import models
from django.test import Client
from django.urls import reverse

from credits.models import ReconciliationRun
from gateway.admin.base import ReadOnlyAdmin
from payments.models import Payout
from relay.models import Attempt, RelayTransaction
from tests.database import rewrite, tamper
from tests.factories import UserFactory, make
from tests.portal.history_rows import earned, relayed
from tests.staff import log_in_staff

pytestmark = pytest.mark.django_db
MODELS = sorted(admin.site._registry, key=lambda model: model._meta.label)
ADDED = [model for model in MODELS if not issubclass(type(admin.site._registry[model]), ReadOnlyAdmin)]
_MOMENT = datetime(2026, 3, 7, 17, 4, 9, tzinfo=UTC)
_CLOCK = re.compile(r"\d{1,2}:\d{2}(?::\d{2})?(?: *[ap]\.?m\b)?(?![\d:]| UTC)", re.IGNORECASE)


def page_of(row: models.Model) -> str:
    return reverse(f"admin:{row._meta.app_label}_{row._meta.model_name}_change", args=[row.pk])


def list_of(model: type[models.Model]) -> str:
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")


def read(client: Client, path: str) -> str:
    """Return what a person reads of the page's own part: no markup, no values of fields."""
    return text_of(client.get(path).content.decode())


def text_of(page: str) -> str:
    """The same, of a page that was opened before."""
    shown = page.split('id="content"', 1)[1]
    return re.sub(
        r"\s+", " ", html.unescape(re.sub(r"<script.*?</script>|<[^>]*>", " ", shown, flags=re.DOTALL))
    )


def times_without_zone(text: str) -> list[str]:
    """Return the times of day in the text that do not name their zone."""
    return [text[max(0, match.start() - 20) : match.end() + 8] for match in _CLOCK.finditer(text)]


def fields_without_border(page: str) -> list[str]:
    """Return the text fields that are invisible because they have no border."""
    return [
        field
        for field in re.findall(r"<(?:input|textarea)\b[^>]*>", page.split('id="content-main"')[-1])
        if not re.search(r'type="(?:hidden|submit|checkbox|radio|file)"', field) and "border" not in field
    ]


@pytest.mark.parametrize("path", ["/admin/", "/admin/search/", "/admin/books/", "/admin/users/user/"])
def test_a_page_has_one_box_that_searches_everything(client: Client, path: str) -> None:
    log_in_staff(client)
    page = client.get(path).content.decode()
    assert page.count('role="search" aria-label="Search everywhere"') == 1
    assert page.count('name="q"') - page.count('id="searchbar"') == 1


@pytest.mark.usefixtures("short_sidebar")
@pytest.mark.parametrize("model", MODELS, ids=lambda model: model._meta.label)
def test_every_time_is_of_24_hours_and_names_its_zone_and_every_field_for_text_is_seen(
    client: Client, model: type[models.Model]
) -> None:
    log_in_staff(client)
    row = make(model)
    page = client.get(page_of(row)).content.decode()
    assert times_without_zone(text_of(page)) == []
    assert times_without_zone(read(client, list_of(model))) == []
    assert fields_without_border(page) == []


@pytest.mark.usefixtures("short_sidebar")
@pytest.mark.parametrize("model", ADDED, ids=lambda model: model._meta.label)
def test_a_form_to_add_a_row_has_no_empty_read_only_field(client: Client, model: type[models.Model]) -> None:
    log_in_staff(client)
    response = client.get(reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_add"))
    fields = [name for _, part in response.context["adminform"].fieldsets for name in part["fields"]]
    assert sorted(fields) == sorted(response.context["adminform"].form.fields)
    assert fields_without_border(response.content.decode()) == []


def test_a_time_has_the_same_format_in_the_list_and_on_the_page(client: Client) -> None:
    log_in_staff(client)
    relayed(UserFactory.create(), 1)
    RelayTransaction.objects.update(created_at=_MOMENT)
    row = RelayTransaction.objects.get()
    for path in (list_of(RelayTransaction), page_of(row)):
        assert "2026-03-07 17:04:09 UTC" in read(client, path)


def test_the_pages_of_our_own_name_the_zone_too(client: Client) -> None:
    log_in_staff(client)
    user = UserFactory.create()
    earned(user, 3)
    relayed(user, 2)
    make(Payout)
    tamper("UPDATE payments_payout SET user_id = %s", user.pk)
    ReconciliationRun.objects.create(
        kind="ledger", started_at=_MOMENT, finished_at=_MOMENT, counts={"findings": 0}
    )
    ReconciliationRun.objects.create(kind="ledger", started_at=_MOMENT)
    pages = {path: read(client, path) for path in ("/admin/", "/admin/books/", page_of(user))}
    assert {path: times_without_zone(text) for path, text in pages.items()} == {path: [] for path in pages}
    assert "2026-03-07 17:04" in pages["/admin/books/"]
    assert len(re.findall(r"\d\d:\d\d", pages[page_of(user)])) >= 5


def test_an_id_is_titled_as_it_is_written(client: Client) -> None:
    log_in_staff(client)
    payout: Any = make(Payout)
    rewrite(Payout.objects, stripe_invoice_id="in_aBc")
    title = client.get(page_of(payout)).content.decode().split("<h1", 1)[1].split("</h1>", 1)[0]
    assert "in_aBc" in title
    assert "Payouts" in title


def test_a_calls_failure_and_the_nodes_error_precede_its_request(client: Client) -> None:
    log_in_staff(client)
    relayed(UserFactory.create(), 1)
    row = RelayTransaction.objects.get()
    words = {name: secrets.token_hex(6) for name in ("failure_detail", "node_message", "digest")}
    RelayTransaction.objects.update(
        status="Failed", failure_code="call-reverted", failure_detail=words["failure_detail"]
    )
    make(
        Attempt,
        relay_transaction=row,
        account_nonce=7,
        transaction_hash=row.transaction_hash,
        node_message=words["node_message"],
        created_at=_MOMENT,
    )
    text = read(client, page_of(row))
    texts = [words["failure_detail"], words["node_message"], "Expected cost", "Controller address"]
    assert sorted(texts, key=text.index) == texts
    assert text.count(words["node_message"]) == 1


def test_an_attempt_links_to_a_configured_explorer(client: Client, settings: Any) -> None:
    log_in_staff(client)
    attempt: Any = make(Attempt)
    settings.EXPLORER_URL = f"https://{secrets.token_hex(4)}.example"
    shown = client.get(page_of(attempt.relay_transaction)).content.decode()
    assert f'href="{settings.EXPLORER_URL}/tx/{attempt.transaction_hash}"' in shown
    settings.EXPLORER_URL = ""
    assert "/tx/" not in client.get(page_of(attempt.relay_transaction)).content.decode()


def test_an_empty_list_offers_to_reset_filters_only_if_some_are_set(client: Client) -> None:
    log_in_staff(client)
    empty = read(client, list_of(RelayTransaction))
    assert "There are no relay transactions yet." in empty
    assert "Reset" not in empty
    relayed(UserFactory.create(), 1)
    narrowed = read(client, f"{list_of(RelayTransaction)}?status__exact=Failed")
    assert "No relay transactions match." in narrowed
    assert "Show all" in narrowed
    added = read(client, f"{list_of(Group)}?q=nobody")
    assert "No groups match." in added
