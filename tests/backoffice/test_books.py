"""The reconciliation page: the last word of each comparison, and a button for those who may."""

import random
import secrets
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from pytest_django import Settings

from backoffice import reconciliation
from credits.models import ReconciliationRun
from gateway.celery import app
from gateway.staff import audit
from tests import staff as staff_logins
from tests.credits.rows import query
from tests.factories import UserFactory
from tests.portal.history_rows import earned
from tests.staff import log_in_staff, messages_of

pytestmark = pytest.mark.django_db
PAGE = "/admin/books/"
Enqueued = list[str]


@pytest.fixture
def enqueued(monkeypatch: pytest.MonkeyPatch) -> Enqueued:
    """Return the names of the tasks that were asked for; no broker is asked."""
    names: Enqueued = []
    monkeypatch.setattr(app, "send_task", lambda name, **_: names.append(name))
    return names


def run_of(kind: str, findings: list[dict[str, Any]], *, age: int = 0) -> ReconciliationRun:
    begin = timezone.now() - timedelta(hours=age)
    counts = {"accounts": random.randint(1_000, 9_999), "findings": len(findings)}
    return ReconciliationRun.objects.create(
        kind=kind, started_at=begin, finished_at=begin, counts=counts, findings=findings
    )


def section(staff: Client, slug: str) -> reconciliation.Section:
    sections: list[reconciliation.Section] = staff.get(PAGE).context["sections"]
    return next(section for section in sections if section.comparison.slug == slug)


def test_the_page_reports_books_that_were_never_compared(staff: Client) -> None:
    assert staff.get(PAGE).content.decode().count("No run yet.") == 5
    assert all(card.is_alarming for card in reconciliation.cards())


def test_the_last_finished_run_is_shown_with_its_findings(staff: Client) -> None:
    earned(UserFactory.create(), 1)
    (account,) = query("SELECT id FROM credits_account")[0]
    run_of("ledger", [], age=5)
    finding = {"rule": "a <rule>", "have": "3", "wanted": "4", "ids": {"account": str(account), "row": "9"}}
    last = run_of("ledger", [finding], age=2)
    ReconciliationRun.objects.create(kind="ledger", started_at=timezone.now())
    run_of("chain", [], age=1)
    invoice = f"in_{secrets.token_hex(6)}"
    run_of("stripe", [{"rule": "x", "have": "", "wanted": "", "ids": {"invoice": invoice}}])
    page = staff.get(PAGE).content.decode()
    assert "a &lt;rule&gt;" in page
    assert f"{last.counts['accounts']:,}" in page
    assert f'href="/admin/credits/creditaccount/{account}/change/"' in page
    assert f'href="/admin/search/?q={invoice}"' in page
    shown = section(staff, "ledger")
    assert shown.last == last
    assert shown.unfinished is not None
    assert len(shown.earlier) == 2
    assert [card.value for card in reconciliation.cards()] == [
        "1 difference",
        "never compared",
        "never compared",
        "1 difference",
        "0 differences",
    ]
    assert [card.is_alarming for card in reconciliation.cards()] == [True, True, True, True, False]
    assert staff.get(shown.page).status_code == staff.get(shown.runs_page).status_code == 200


@pytest.mark.parametrize(
    ("slug", "task"),
    [
        ("ledger", "credits.reconcile"),
        ("causes", "credits.compare_causes"),
        ("roots", "proofs.audit_roots"),
        ("stripe", "payments.reconcile"),
        ("chain", "relay.reconcile"),
    ],
)
def test_a_worker_compares_on_demand_and_the_log_names_the_requester(
    staff: Client,
    enqueued: Enqueued,
    settings: Settings,
    slug: str,
    task: str,
) -> None:
    settings.STRIPE_SECRET_KEY = "sk_test_x"
    assert f'value="{slug}"' in staff.get(PAGE).content.decode()
    assert staff.post(PAGE, {"comparison": slug})["location"] == PAGE
    assert enqueued == [task]
    entry = LogEntry.objects.get()
    assert audit.details_of(entry)["action"] == "compare now"


@pytest.mark.parametrize("slug", ["ledger", "stripe", "chain"])
def test_without_a_broker_the_page_does_not_announce_a_comparison(
    staff: Client, broker_away: None, settings: Settings, slug: str
) -> None:
    settings.STRIPE_SECRET_KEY = "sk_test_x"
    message = messages_of(staff.post(PAGE, {"comparison": slug}, follow=True))
    assert "Workers unavailable" in message
    assert "appears here" not in message
    assert audit.details_of(LogEntry.objects.get())["action"] == "compare now refused"


def test_view_permission_does_not_allow_a_comparison(
    client: Client, enqueued: Enqueued, settings: Settings
) -> None:
    settings.STRIPE_SECRET_KEY = "sk_test_x"
    log_in_staff(client, "view_reconciliationrun")
    assert "Compare now" not in client.get(PAGE).content.decode()
    for slug in ("ledger", "causes", "roots", "stripe", "chain"):
        assert client.post(PAGE, {"comparison": slug}).status_code == 403
    assert client.post(PAGE, {"comparison": "everything"}).status_code == 404
    assert not LogEntry.objects.exists()
    assert enqueued == []


@pytest.mark.parametrize(
    ("role", "slugs"),
    [
        ("support", []),
        ("operations", ["ledger", "causes", "roots", "chain"]),
        ("finance", ["ledger", "causes", "roots", "chain", "stripe"]),
    ],
)
def test_each_role_has_its_own_comparisons_made(
    enqueued: Enqueued, settings: Settings, role: str, slugs: list[str]
) -> None:
    settings.STRIPE_SECRET_KEY = "sk_test_x"
    browser = staff_logins.browser_of(staff_logins.member(role))
    for slug in ("ledger", "causes", "roots", "chain", "stripe"):
        assert browser.post(PAGE, {"comparison": slug}).status_code == (302 if slug in slugs else 403)
    assert len(enqueued) == len(slugs)


def test_staff_with_view_permission_find_a_link_to_the_page(client: Client) -> None:
    log_in_staff(client, "view_reconciliationrun")
    slugs = [one.comparison.slug for one in client.get(PAGE).context["sections"]]
    assert slugs == ["ledger", "causes", "roots", "stripe", "chain"]
    assert PAGE in client.get("/admin/").content.decode()


def test_others_do_not_find_the_page(client: Client) -> None:
    log_in_staff(client, "view_user")
    assert client.get(PAGE).status_code == 403
    assert Client().get(PAGE)["location"].startswith("/admin/login/")


def test_without_stripe_there_is_nothing_to_compare_with(staff: Client, settings: Settings) -> None:
    settings.STRIPE_SECRET_KEY = ""
    assert not section(staff, "stripe").may_be_run
    assert section(staff, "chain").may_be_run


def test_the_page_costs_the_same_whatever_was_found(staff: Client) -> None:
    counts = []
    for length in (1, 70):
        for kind in ("ledger", "chain"):
            for age in range(length):
                run_of(
                    kind,
                    [{"rule": "r", "have": "1", "wanted": "2", "ids": {}}] * length,
                    age=age,
                )
        with CaptureQueriesContext(connection) as statements:
            staff.get(PAGE)
        counts.append(len(statements))
    assert counts[0] == counts[1]
