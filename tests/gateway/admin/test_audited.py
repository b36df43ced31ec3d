"""What Django's own pages leave in the log: from what to what, in which request; and the history that shows it."""

import html
import secrets

import pytest
from django.contrib.admin.models import ADDITION, CHANGE, DELETION, LogEntry
from django.contrib.auth.models import Group
from django.test import Client
from django.urls import reverse
from django_otp.plugins.otp_totp.models import TOTPDevice

from gateway.admin.audit import details_of, sentence_of
from tests.factories import UserFactory, random_address
from tests.staff import browser_of, confirm, member
from users.models import TrustedImplementation, User

pytestmark = pytest.mark.django_db
_ROW = {"kind": "profile", "is_active": "on"}


@pytest.fixture
def client() -> Client:
    """A browser of operations."""
    return browser_of(member("operations"))


def add(client: Client, **values: str) -> TrustedImplementation:
    answer = client.post(reverse("admin:users_trustedimplementation_add"), {**_ROW, **values})
    assert answer.status_code == 302
    return TrustedImplementation.objects.latest("pk")


def test_an_addition_tells_every_value_that_was_given(client: Client) -> None:
    name, address = secrets.token_hex(4), random_address()
    add(client, name=name, address=address)
    entry = LogEntry.objects.get()
    assert entry.action_flag == ADDITION
    changes = details_of(entry)["changes"]
    assert (changes["name"], changes["address"]) == (["", name], ["", address])


def test_a_change_tells_from_what_to_what_and_in_which_request(client: Client) -> None:
    row = add(client, name="old", address=random_address())
    page = reverse("admin:users_trustedimplementation_change", args=[row.pk])
    answer = client.post(page, {**_ROW, "name": "new", "address": row.address})
    entry = LogEntry.objects.order_by("pk").last()
    assert entry is not None
    assert entry.action_flag == CHANGE
    details = details_of(entry)
    assert details["changes"] == {"name": ["old", "new"]}
    assert details["requestId"] == answer["X-Request-ID"] != ""


def test_the_history_page_shows_who_what_why_and_from_what_to_what(client: Client) -> None:
    row = add(client, name="the old name", address=random_address())
    page = reverse("admin:users_trustedimplementation_change", args=[row.pk])
    answer = client.post(page, {**_ROW, "name": "the new name", "address": row.address})
    history = client.get(reverse("admin:users_trustedimplementation_history", args=[row.pk]))
    shown = html.unescape(history.content.decode())
    actor = LogEntry.objects.latest("pk").user
    for part in (
        "name: the old name → the new name",
        "Changed Name.",
        actor.username,
        answer["X-Request-ID"],
    ):
        assert part in shown
    assert "No fields changed" not in shown


def test_the_history_of_an_action_shows_its_name_and_its_reason(client: Client) -> None:
    reason = secrets.token_hex(8)
    owner = UserFactory.create()
    confirm(browser_of(member("support")), "users_user", "adjust_credits", owner, reason=reason, credits=3)
    shown = client.get(reverse("admin:users_user_history", args=[owner.pk])).content.decode()
    assert reason in shown
    assert "adjust_credits" in shown
    assert "credits: (empty) → 3" in shown


def test_a_deletion_keeps_the_request(client: Client) -> None:
    superuser = browser_of(member("superuser"))
    row = add(client, name="gone", address=random_address())
    page = reverse("admin:users_trustedimplementation_delete", args=[row.pk])
    answer = superuser.post(page, {"post": "yes"})
    entry = LogEntry.objects.get(action_flag=DELETION)
    assert details_of(entry)["requestId"] == answer["X-Request-ID"]
    assert (sentence_of(entry), entry.object_repr) == ("delete", str(row))


def test_a_group_that_is_given_is_named(client: Client) -> None:
    person = User.objects.create_user(secrets.token_hex(4), is_staff=True)
    group = Group.objects.get(name="support")
    body = {"username": person.username, "is_staff": "on", "is_active": "on", "groups": [group.pk]}
    sessions = {f"sign_in_sessions-{name}_FORMS": "0" for name in ("TOTAL", "INITIAL")}
    page = reverse("admin:users_user_change", args=[person.pk])
    assert browser_of(member("superuser")).post(page, {**body, **sessions}).status_code == 302
    assert details_of(LogEntry.objects.get())["changes"]["groups"] == ["", "support"]


def test_a_second_factors_seed_is_never_written_down() -> None:
    person, seed = member("support"), secrets.token_hex(20)
    body = {
        "user": person.pk,
        "name": "phone",
        "confirmed": "on",
        "key": seed,
        "step": 30,
        "t0": 0,
        "digits": 6,
    }
    body |= {"tolerance": 1, "drift": 0, "last_t": -1, "throttling_failure_count": 0}
    answer = browser_of(member("superuser")).post(reverse("admin:otp_totp_totpdevice_add"), body)
    assert answer.status_code == 302, answer.context["errors"]
    row, entry = TOTPDevice.objects.get(user=person), LogEntry.objects.get()
    assert seed not in entry.change_message
    assert row.key not in entry.change_message
    assert details_of(entry)["changes"]["user"] == ["", str(person)]
