"""The audit log's page: found by request, row and person, filtered, and read-only for everybody."""

import secrets

import pytest
from django.contrib.admin.models import LogEntry
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from structlog.contextvars import bound_contextvars

from credits.services import adjustments
from gateway.staff import approvals, audit
from gateway.staff.models import StaffAction
from tests.factories import UserFactory
from tests.staff import browser_of, member
from users.models import User

pytestmark = pytest.mark.django_db
LIST = "admin:gateway_admin_staffaction_changelist"


@pytest.fixture
def client() -> Client:
    """A browser of support."""
    return browser_of(member("support"))


def entries(client: Client, **query: str) -> list[int]:
    page = client.get(reverse(LIST), query)
    assert page.status_code == 200
    return [entry.pk for entry in page.context["cl"].result_list]


def write(actor: User, row: User, request: str = "", **values: str) -> int:
    with bound_contextvars(request_id=request or secrets.token_hex(8)):
        entry = audit.record(actor=actor, row=row, action=values.pop("action", "look"), **values)  # type: ignore[arg-type]
    assert entry is not None
    return entry.pk


def test_an_entry_is_found_by_request_row_and_user(client: Client) -> None:
    one, other = member("finance"), member("finance")
    row, another = UserFactory.create(), UserFactory.create()
    request = secrets.token_hex(8)
    first, second = write(one, row, request), write(other, another, reason=request)
    assert entries(client) == [second, first]
    assert entries(client, q=request) == [first]
    assert entries(client, q=str(another.pk)) == [second]
    assert entries(client, q=one.username) == [first]
    assert entries(client, q="nothing") == []
    assert entries(client, user__id__exact=str(other.pk)) == [second]


def test_the_search_for_a_request_walks_its_index(client: Client) -> None:
    with CaptureQueriesContext(connection) as queries:
        entries(client, q=secrets.token_hex(8))
    [statement] = [query["sql"] for query in queries if "SUBSTRING" in query["sql"].upper()][:1]
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute(f"EXPLAIN {statement}")
        plan = " ".join(line for (line,) in cursor.fetchall())
    assert "gateway_admin_staffaction_request" in plan


def test_a_row_and_its_trace_lead_to_one_another(client: Client) -> None:
    row, reason = UserFactory.create(), secrets.token_hex(8)
    write(member("finance"), row, reason=reason, action="close")
    page = client.get(reverse(LIST)).content.decode()
    assert reverse("admin:users_user_change", args=[row.pk]) in page
    assert reason in page
    assert reason in client.get(reverse("admin:users_user_history", args=[row.pk])).content.decode()


def test_an_entry_about_something_as_a_whole_has_its_name() -> None:
    client = browser_of(member("operations"))
    client.post(
        reverse("admin:gateway_admin_pause_do", args=["pause_relay"]),
        {"reason": "the node is replaced", "token": "0" * 32},
    )
    assert "The whole relay" in client.get(reverse(LIST)).content.decode()


@pytest.mark.parametrize("role", ["superuser", "support", "finance", "operations"])
def test_an_audit_entry_cannot_be_added_changed_or_deleted(role: str) -> None:
    person = member(role)
    pk, client = write(person, person), browser_of(person)
    before = list(LogEntry.objects.values())
    for page, ids in (("add", []), ("change", [pk]), ("delete", [pk])):
        url = reverse(f"admin:gateway_admin_staffaction_{page}", args=ids)
        assert client.post(url, {"post": "yes", "object_repr": "x"}).status_code == 403
    client.post(reverse(LIST), {"action": "delete_selected", "_selected_action": [pk], "post": "yes"})
    assert list(LogEntry.objects.values()) == before
    assert b"delete_selected" not in client.get(reverse(LIST)).content


def test_a_longer_log_costs_no_more_statements(client: Client) -> None:
    entries(client)
    counts = []
    for _ in range(2):
        for _ in range(5):
            write(member("finance"), UserFactory.create())
        with CaptureQueriesContext(connection) as queries:
            entries(client)
        counts.append(len(queries))
    assert counts[0] == counts[1]
    assert StaffAction.objects.count() == 10


def test_a_request_and_its_execution_are_distinct_and_link_to_each_other(client: Client) -> None:
    asker, second = member("support"), member("finance")
    request = adjustments.request(
        user=UserFactory.create(),
        credits=1_000_000,
        actor=asker,
        key=secrets.token_hex(8),
        reason="paid twice",
    )
    approvals.approve(request_id=request.pk, actor=second, reason="checked")
    page = client.get(reverse(LIST)).content.decode()
    assert (page.count("<strong>Asked for</strong>"), page.count("<strong>Carried out</strong>")) == (1, 1)
    assert page.count(f">request {request.pk}</a>") == page.count(">Adjust credits</div>") == 2
    newest = StaffAction.objects.latest("pk")
    shown = client.get(reverse("admin:gateway_admin_staffaction_change", args=[newest.pk])).content.decode()
    assert f"{asker} (support): paid twice" in shown
    assert f"Carried out: {second}. checked" in shown
    posted = f"{reverse('admin:credits_creditentry_changelist')}?q=approval:{request.pk}"
    assert posted in shown
    [entry] = client.get(posted).context["cl"].result_list
    request_page = client.get(reverse("admin:gateway_admin_approvalrequest_change", args=[request.pk]))
    assert reverse("admin:credits_creditentry_change", args=[entry.pk]) in request_page.content.decode()


def test_an_action_that_is_called_like_a_stage_is_no_request(client: Client) -> None:
    row = UserFactory.create()
    changes = {"request": ("", "5")}
    with bound_contextvars(request_id=secrets.token_hex(8)):
        audit.record(actor=member("finance"), row=row, action="save_badge asked", changes=changes)
    page = client.get(reverse(LIST)).content.decode()
    assert "Save_badge" not in page
    assert "Save badge asked" in page
    assert "request: 5" in page
    assert "<strong>Asked for</strong>" not in page
    assert ">request 5</a>" not in page
