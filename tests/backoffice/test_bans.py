"""Support bans a person on the user's page, which says before what happens to the money, and a colleague lifts it."""

import secrets

import pytest
from django.contrib.admin.models import LogEntry

from credits.services import entries
from gateway.staff.audit import details_of
from tests.factories import UserFactory
from tests.staff import address_of, browser_of, confirm, member, messages_of
from users.models import Ban, User

pytestmark = pytest.mark.django_db


@pytest.fixture
def person() -> User:
    user = UserFactory.create()
    entries.grant(user=user, credits=1_234, source="VIDEO_ADS", key=secrets.token_hex(8))
    return user


def test_the_page_says_what_happens_to_the_money_and_the_reason_is_logged(person: User) -> None:
    support = member("support")
    browser = browser_of(support)
    shown = browser.get(address_of("users_user", "ban", person)).content.decode()
    assert "1,234 credits stay on the account" in shown
    assert not Ban.objects.exists()

    confirm(browser, "users_user", "ban", person, reason="stolen cards")
    person.refresh_from_db()
    ban = Ban.objects.get(user=person)
    assert (person.is_active, ban.reason, ban.banned_by) == (False, "stolen cards", support)
    entry = LogEntry.objects.filter(user=support).latest("pk")
    assert (details_of(entry)["action"], details_of(entry)["reason"]) == ("ban", "stolen cards")
    page = browser.get(f"/admin/users/user/{person.pk}/change/").content.decode()
    assert "stolen cards" in page


def test_a_colleague_lifts_the_ban_and_not_who_banned(person: User) -> None:
    first = browser_of(member("support"))
    confirm(first, "users_user", "ban", person)
    assert "a colleague lifts" in messages_of(confirm(first, "users_user", "lift_ban", person))
    person.refresh_from_db()
    assert not person.is_active
    confirm(browser_of(member("support")), "users_user", "lift_ban", person)
    person.refresh_from_db()
    assert (person.is_active, Ban.objects.get().lifted_by is None) == (True, False)


@pytest.mark.parametrize("role", ["finance", "operations"])
def test_other_roles_do_not_ban(person: User, role: str) -> None:
    assert confirm(browser_of(member(role)), "users_user", "ban", person).status_code == 403
    assert not Ban.objects.exists()


def test_the_accounts_own_field_does_not_lift_a_ban(person: User) -> None:
    browser, page = browser_of(member("superuser")), f"/admin/users/user/{person.pk}/change/"
    assert 'name="is_active"' in browser.get(page).content.decode()
    confirm(browser_of(member("support")), "users_user", "ban", person)
    assert 'name="is_active"' not in browser.get(page).content.decode()
    browser.post(page, {"is_active": "on"}, follow=True)
    person.refresh_from_db()
    assert not person.is_active
