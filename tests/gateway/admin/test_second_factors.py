"""Passwords and second factors: made anew when another role agrees, told once, and shown by no page."""

import secrets
from functools import partial
from io import StringIO

import pytest
from django.contrib.admin.models import LogEntry
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone

from credits.queries import balance_of
from gateway.staff import approvals
from gateway.staff.models import ApprovalRequest
from tests.factories import UserFactory
from tests.staff import SUPERUSER, approve, browser_of, confirm, log_in_staff, member, messages_of
from users.models import Invitation, Phone, RecoveryCodes, User
from users.services import second_factors, staff

pytestmark = pytest.mark.django_db
DEVICES = "/admin/users/phone/"


def _spellings(device: Phone) -> tuple[str, str]:
    return device.key, device.shown_key


def _pages(client: Client, person: User) -> str:
    request = ApprovalRequest.objects.get()
    queue = "/admin/gateway_admin/approvalrequest/"
    paths = (queue, f"{queue}{request.pk}/change/", f"/admin/users/user/{person.pk}/change/", DEVICES)
    return " ".join(client.get(path).content.decode() for path in paths)


def test_a_second_factor_is_reset_when_another_role_agrees() -> None:
    person, browser = member("support"), browser_of(member("operations"))
    old = Phone.objects.create(user=person, name="lost")
    codes = second_factors.renew_codes(person)
    messages = messages_of(confirm(browser, "users_user", "reset_second_factor", person))
    assert (Phone.objects.get(user=person), RecoveryCodes.objects.count()) == (old, 1)
    assert "The second factor was removed" in approve("finance")
    device = Phone.objects.get(user=person)
    assert (device.confirmed, RecoveryCodes.objects.count()) == (False, 0)
    # Only the page that its owner opens with the password shows the new key.
    later = messages + _pages(browser_of(member("superuser")), person)
    assert not any(secret in later for secret in (*_spellings(device), *_spellings(old), *codes))


@pytest.mark.parametrize("role", ["operations", SUPERUSER])
def test_a_staff_member_is_locked_out_at_once_and_readmitted_by_two_approvers(role: str) -> None:
    person = member("support")
    person.set_password("correct horse battery")
    person.save()
    theirs, browser = browser_of(person), browser_of(member(role))
    assert theirs.get("/admin/").status_code == 200
    assert "have ended" in messages_of(confirm(browser, "users_user", "lock_out", person))
    assert theirs.get("/admin/").status_code == 302
    person.refresh_from_db()
    assert (person.is_active, person.has_usable_password()) == (True, False)
    assert Phone.objects.filter(user=person, confirmed=True).exists()
    confirm(browser, "users_user", "reset_password", person)
    person.refresh_from_db()
    assert not person.has_usable_password()


@pytest.mark.parametrize("page", ["change/", "history/", "config/", "qrcode/"])
def test_no_page_shows_a_key(client: Client, page: str) -> None:
    log_in_staff(client)
    device = Phone.objects.create(user=UserFactory.create(), name="phone")
    path = f"{DEVICES}{device.pk}/{page}"

    response = client.get(path)

    assert response.status_code == (200 if page in {"change/", "history/"} else 302)
    assert not any(spelling in response.content.decode() for spelling in _spellings(device))


def test_the_first_staff_are_two_mutual_approvers_and_one_who_may_grant_credits() -> None:
    def begin(name: str, role: str) -> str:
        out = StringIO()
        call_command("create_staff", name, role=role, stdout=out)
        return out.getvalue()

    printed = begin("ada", "operations")
    ada = User.objects.get(username="ada")
    assert ada.check_password(printed.split("password: ")[1].splitlines()[0])
    assert _spellings(Phone.objects.get(user=ada))[1] in printed
    with pytest.raises(CommandError, match="operations and finance"):
        begin("bob", "operations")
    begin("eve", "finance")
    begin("sam", "support")
    user = UserFactory.create()
    given = {"reason": "first call", "actor": "sam", "stdout": StringIO()}
    call_command("adjust_credits", str(user.profile_address), "5000", **given)
    assert balance_of(user).available == 5000
    for role in ("operations", "finance", "support"):
        with pytest.raises(CommandError, match="There are three staff accounts"):
            begin("mallory", role)
    User.objects.filter(username="ada").update(is_active=False)
    begin("successor", "operations")
    assert not User.objects.filter(is_superuser=True).exists()


def test_only_the_sole_member_of_a_role_is_readmitted() -> None:
    eve, _ = member("finance"), member("operations")
    call = partial(call_command, "create_staff", eve.username, reset=True)
    out = StringIO()
    Phone.objects.create(user=eve, confirmed=True)
    call(role="finance", stdout=out)
    eve.refresh_from_db()
    assert eve.check_password(out.getvalue().split("password: ")[1].splitlines()[0])
    assert second_factors.must_enrol(eve, now=timezone.now())
    assert LogEntry.objects.get().object_id == str(eve.pk)
    with pytest.raises(CommandError, match="has the role operations"):
        call(role="operations")
    for another in ("finance", SUPERUSER):
        helper = member(another)
        with pytest.raises(CommandError, match="in the admin, with two people"):
            call(role="finance")
        User.objects.filter(pk=helper.pk).update(is_active=False)
    # Who is still logged in may agree to what operations ask for.
    why = {"reason": "forgotten", "key": secrets.token_hex(8)}
    request = staff.request_password(person=eve, actor=member("operations"), **why)
    approvals.approve(request_id=request.pk, actor=User.objects.get(pk=eve.pk), reason="I asked for it")
    assert Invitation.objects.get().user == eve
