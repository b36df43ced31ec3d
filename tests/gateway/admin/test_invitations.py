"""A member of staff chooses the password alone: with a link and a code from two people, once, within three days."""

import re
import secrets
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Group
from django.test import Client
from django.utils import timezone

from gateway.staff.models import ApprovalRequest
from tests.staff import SUPERUSER, approve, browser_of, confirm, member, messages_of, saved
from tests.threads import at_once
from users.models import Invitation, User
from users.services import invitations
from users.services.invitations import Outcome

pytestmark = pytest.mark.django_db
PASSWORD = "correct horse battery"


def code_in(message: str) -> str:
    return str(re.findall(r"\b\d{4}-\d{4}\b", message)[0])


def link_in(message: str) -> str:
    return str(re.findall(r"/admin/invitation/[\w-]+/", message)[0])


def invited(person: User) -> tuple[str, str]:
    """Invite the person again, after a request of operations; return link and code."""
    operations = browser_of(member("operations"))
    confirm(operations, "users_user", "reset_password", person)
    code = code_in(approve("finance"))
    return link_in(messages_of(confirm(operations, "users_user", "make_link", person))), code


def send(link: str, code: str, password: str = PASSWORD, again: str | None = None) -> Any:
    client = Client(REMOTE_ADDR="127.0.0.1")
    return client.post(link, {"code": code, "password": password, "again": again or password})


def can_log_in(person: User, password: str = PASSWORD) -> bool:
    return User.objects.get(pk=person.pk).check_password(password)


def test_a_new_colleague_chooses_the_password_and_sets_up_a_phone() -> None:
    operations, name = browser_of(member("operations")), f"ada-{secrets.token_hex(4)}"
    form = {"username": name, "groups": [Group.objects.get(name="support").pk]}
    code = code_in(saved(operations, "/admin/users/user/add/", form, role="finance"))
    person = User.objects.get(username=name)
    assert not person.has_usable_password()
    link = link_in(messages_of(confirm(operations, "users_user", "make_link", person)))
    theirs = Client(REMOTE_ADDR="127.0.0.1")
    assert "Choose your password" in theirs.get(link).content.decode()
    response = theirs.post(link, {"code": code, "password": PASSWORD, "again": PASSWORD})
    assert response["Location"] == "/admin/second-factor/enrol/"
    assert "Set up your second factor" in theirs.get(response["Location"]).content.decode()
    assert can_log_in(person)
    stored = [*ApprovalRequest.objects.values(), *Invitation.objects.values(), *LogEntry.objects.values()]
    token = link.rstrip("/").rsplit("/", 1)[1]
    assert not any(secret in str(stored) for secret in (code, code.replace("-", ""), token, PASSWORD))
    assert "choose a password" in LogEntry.objects.latest("pk").change_message


@pytest.mark.parametrize("role", ["operations", SUPERUSER])
def test_the_approver_has_the_code_and_cannot_create_the_link(role: str) -> None:
    person, asker = member("support"), member("operations" if role == SUPERUSER else SUPERUSER)
    approver = browser_of(boss := member(SUPERUSER if role == SUPERUSER else "finance"))
    confirm(browser_of(asker), "users_user", "reset_password", person)
    request = ApprovalRequest.objects.latest("pk")
    code_in(messages_of(confirm(approver, "gateway_admin_approvalrequest", "approve", request)))
    if role == SUPERUSER:
        page: Any = approver.get(f"/admin/users/user/{person.pk}/change/")
        assert "Make the invitation link" not in page.content.decode()
        assert (
            "/admin/invitation/" not in confirm(approver, "users_user", "make_link", person).content.decode()
        )
    else:
        assert confirm(approver, "users_user", "make_link", person).status_code == 403
    assert Invitation.objects.get().link_hash == ""
    assert Invitation.objects.get().approved_by == boss


def test_before_approval_there_is_nothing_to_link_to() -> None:
    person, operations = member("support"), browser_of(member("operations"))
    confirm(operations, "users_user", "reset_password", person)
    assert "does not apply" in messages_of(confirm(operations, "users_user", "make_link", person))
    assert not Invitation.objects.exists()


def test_a_link_is_used_once() -> None:
    person = member("support")
    link, code = invited(person)
    assert send(link, code).status_code == 302
    assert send(link, code, "another one that is long").status_code == 404
    assert can_log_in(person)


@pytest.mark.parametrize("how", ["expired", "replaced", "invited again", "closed account", "unknown"])
def test_a_link_that_is_closed_changes_nothing(how: str) -> None:
    person = member("support")
    link, code = invited(person)
    before = User.objects.get(pk=person.pk).password
    match how:
        case "expired":
            Invitation.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
        case "replaced":
            confirm(browser_of(member("operations")), "users_user", "make_link", person)
        case "invited again":
            invited(person)
        case "closed account":
            User.objects.filter(pk=person.pk).update(is_active=False)
        case "unknown":
            link = "/admin/invitation/unknown/"
    response = send(link, code)
    assert (response.status_code, "This link is closed" in response.content.decode()) == (404, True)
    assert User.objects.get(pk=person.pk).password == before


def test_five_wrong_codes_close_the_link() -> None:
    person = member("support")
    link, code = invited(person)
    wrong = f"{(int(code[:4]) + 1) % 10_000:04}-{code[5:]}"
    for _ in range(5):
        assert "That code is wrong" in send(link, wrong).content.decode()
    assert send(link, code).status_code == 404
    assert not can_log_in(person)


@pytest.mark.parametrize(
    ("password", "again", "complaint"),
    [
        ("short", "short", "at least 12"),
        ("password1234", "password1234", "too common"),
        (PASSWORD, "x", "differ"),
    ],
)
def test_a_weak_or_mistyped_password_is_refused_and_costs_no_try(
    password: str, again: str, complaint: str
) -> None:
    person = member("support")
    link, code = invited(person)
    assert complaint in send(link, code, password, again).content.decode()
    assert Invitation.objects.get().failures == 0
    assert not can_log_in(person, password)


@pytest.mark.django_db(transaction=True)
def test_of_two_concurrent_requests_one_sets_the_password() -> None:
    person = member("support")
    code = invitations.prepare(person, approved_by=member("finance"))
    token = invitations.make_link(person, actor=member("operations"))

    def choose(number: int) -> Outcome:
        return invitations.accept(token=token, code=code, password=f"{PASSWORD} {number}")

    results = at_once([partial(choose, number) for number in range(3)])
    assert results.count(Outcome.ACCEPTED) == 1
    assert results.count(Outcome.CLOSED) == 2
