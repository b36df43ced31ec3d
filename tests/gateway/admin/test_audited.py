"""What Django's own pages leave in the log: from what to what, in which request; and the history that shows it."""

import html
import secrets

import pytest
from django.contrib.admin.models import CHANGE, DELETION, LogEntry
from django.contrib.auth.models import Group
from django.test import Client
from django.urls import reverse

from checkin.models import DropTable
from checkin.services import drop_tables
from gateway.staff.audit import details_of, sentence_of
from tests.factories import UserFactory, random_address
from tests.staff import browser_of, confirm, member, saved
from users.models import TrustedImplementation, User

pytestmark = pytest.mark.django_db
_ROW = {"kind": "profile", "is_active": "on"}


@pytest.fixture
def client() -> Client:
    """A browser of operations."""
    return browser_of(member("operations"))


def entries_of(kind: str) -> list[LogEntry]:
    """Return what was asked for and carried out; the decision itself is an entry of the request."""
    return list(LogEntry.objects.filter(change_message__contains=f'"action": "{kind}').order_by("pk"))


PAGE = "admin:users_trustedimplementation"


def add(client: Client, **values: str) -> TrustedImplementation:
    saved(client, reverse(f"{PAGE}_add"), {**_ROW, **values}, role="finance")
    return TrustedImplementation.objects.latest("pk")


def test_a_request_and_its_execution_are_two_entries_of_two_actors(client: Client) -> None:
    name, address = secrets.token_hex(4), random_address()
    row = add(client, name=name, address=address)
    requested, carried_out = entries_of("save_trusted_code")
    assert [sentence_of(entry) for entry in (requested, carried_out)] == [
        "save_trusted_code asked",
        "save_trusted_code carried out",
    ]
    assert requested.user != carried_out.user
    assert carried_out.object_id == str(row.pk)
    for entry in (requested, carried_out):
        changes = details_of(entry)["changes"]
        assert (changes["name"], changes["address"]) == (["", name], ["", address])


def test_the_rows_history_shows_the_old_and_the_new_value(client: Client) -> None:
    row = add(client, name="the old name", address=random_address())
    page = reverse(f"{PAGE}_change", args=[row.pk])
    saved(client, page, {**_ROW, "name": "the new name", "address": row.address}, role="finance")
    entry = LogEntry.objects.latest("pk")
    assert details_of(entry)["changes"]["name"] == ["the old name", "the new name"]
    assert details_of(entry)["requestId"]
    shown = html.unescape(client.get(reverse(f"{PAGE}_history", args=[row.pk])).content.decode())
    for part in ("name: the old name → the new name", entry.user.username, details_of(entry)["requestId"]):
        assert part in shown


def test_a_form_that_takes_no_approval_is_logged_when_it_is_saved() -> None:
    owner = UserFactory.create()
    sessions = {f"sign_in_sessions-{name}_FORMS": "0" for name in ("TOTAL", "INITIAL")}
    page = reverse("admin:users_user_change", args=[owner.pk])
    response = browser_of(member("superuser")).post(page, {**sessions})
    entry = LogEntry.objects.get()
    assert (response.status_code, entry.action_flag) == (302, CHANGE)
    details = details_of(entry)
    assert details["changes"] == {"is_active": ["True", "False"]}
    assert details["requestId"] == response["X-Request-ID"] != ""


def test_the_history_of_an_action_shows_its_name_and_its_reason(client: Client) -> None:
    reason = secrets.token_hex(8)
    owner = UserFactory.create()
    confirm(browser_of(member("support")), "users_user", "adjust_credits", owner, reason=reason, credits=3)
    shown = client.get(reverse("admin:users_user_history", args=[owner.pk])).content.decode()
    assert reason in shown
    assert "adjust_credits" in shown
    assert "credits: +3" in shown


def test_a_deletion_keeps_the_request() -> None:
    author, table = member("finance"), DropTable.objects.latest("pk")
    assert table.badge is not None
    row = drop_tables.create_draft(badge=table.badge, author=author, like=table)
    page = reverse("admin:checkin_droptable_delete", args=[row.pk])
    response = browser_of(author).post(page, {"post": "yes"})
    entry = LogEntry.objects.get(action_flag=DELETION)
    assert details_of(entry)["requestId"] == response["X-Request-ID"]
    assert (sentence_of(entry), entry.object_repr) == ("delete", str(row))


def test_a_granted_role_is_named_in_its_request_and_in_its_grant() -> None:
    person = User.objects.create_user(secrets.token_hex(4), is_staff=True)
    group = Group.objects.get(name="support")
    body = {"username": person.username, "is_staff": "on", "is_active": "on", "groups": [group.pk]}
    sessions = {f"sign_in_sessions-{name}_FORMS": "0" for name in ("TOTAL", "INITIAL")}
    page = reverse("admin:users_user_change", args=[person.pk])
    saved(browser_of(member("superuser")), page, {**body, **sessions}, role="finance")
    assert [details_of(entry)["changes"]["groups"] for entry in entries_of("save_staff")] == [
        ["", "support"]
    ] * 2
    assert list(person.groups.all()) == [group]
