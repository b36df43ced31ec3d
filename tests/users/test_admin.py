"""What support sees of people and sessions, and the one thing it may do to a session."""

import secrets
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client

from tests.fakes.chain import FakeChain
from tests.fakes.profiles import Profile
from tests.staff import confirm
from tests.users.auth_client import signed_in
from users.models import Phone, SignInSession, User

pytestmark = pytest.mark.django_db
USERS, SESSIONS = "/admin/users/user/", "/admin/users/signinsession/"


def _staff_client(**rights: Any) -> Client:
    staff = User.objects.create_user(f"staff-{secrets.token_hex(4)}", is_staff=True, **rights)
    device = Phone.objects.create(user=staff, confirmed=True)
    client = Client()
    client.force_login(staff, backend="django.contrib.auth.backends.ModelBackend")
    session = client.session
    session["otp_device_id"] = device.persistent_id
    session.save()
    return client


@pytest.fixture
def support() -> Client:
    """A superuser who has given the second factor."""
    return _staff_client(is_superuser=True)


def test_a_user_is_found_by_address_in_any_casing(support: Client, profile: Profile) -> None:
    signed_in(profile)

    page = support.get(USERS, {"q": profile.profile_address.lower()}).content.decode()
    missed = support.get(USERS, {"q": "0x" + "12" * 20}).content.decode()

    assert profile.profile_address in page
    assert profile.profile_address not in missed


def test_staff_are_found_by_the_start_of_their_name(support: Client, profile: Profile) -> None:
    signed_in(profile)

    page = support.get(USERS, {"q": "STAFF-"}).content.decode()

    assert "1 user" in page
    assert profile.profile_address not in page


def test_a_session_is_found_by_its_profile_and_by_its_controller(
    support: Client, profile: Profile, chain: FakeChain
) -> None:
    other = chain.create_profile()
    signed_in(profile)
    signed_in(other)

    for term in (profile.profile_address.lower(), profile.controller.address.lower()):
        page = support.get(SESSIONS, {"q": term}).content.decode()
        # The search box repeats the term as it was typed, in lower case.
        assert profile.controller.address in page
        assert other.controller.address not in page


def test_of_a_wallet_user_only_the_account_state_can_change(support: Client, profile: Profile) -> None:
    signed_in(profile)
    user = User.objects.get(profile_address=profile.profile_address)
    page = f"{USERS}{user.pk}/change/"
    assert profile.controller.address in support.get(page).content.decode()

    form = {
        "username": "changed",
        "profile_address": "0x" + "12" * 20,
        "is_superuser": "on",
        "is_staff": "on",
    }
    sessions = {f"sign_in_sessions-{name}_FORMS": "1" for name in ("TOTAL", "INITIAL")}
    response = support.post(page, {**form, **sessions})

    assert response.status_code == 302
    user.refresh_from_db()
    assert (user.username, user.profile_address) == (profile.profile_address, profile.profile_address)
    assert (user.is_active, user.is_staff, user.is_superuser) == (False, False, False)


def test_users_cannot_be_deleted(support: Client, profile: Profile) -> None:
    signed_in(profile)
    user = User.objects.get(profile_address=profile.profile_address)

    assert support.post(f"{USERS}{user.pk}/delete/", {"post": "yes"}).status_code == 403
    assert User.objects.filter(pk=user.pk).exists()


def test_sessions_are_shown_and_never_edited(support: Client, profile: Profile) -> None:
    signed_in(profile)
    session = SignInSession.objects.get()

    assert support.get(f"{SESSIONS}{session.pk}/change/").status_code == 200
    assert support.post(f"{SESSIONS}{session.pk}/change/", {"revoked_reason": "staff"}).status_code == 403
    assert support.get(f"{SESSIONS}add/").status_code == 403
    assert support.post(f"{SESSIONS}{session.pk}/delete/", {"post": "yes"}).status_code == 403


def _revoke(client: Client, *sessions: SignInSession) -> Any:
    return confirm(client, "users_signinsession", "revoke", *sessions)


def test_support_ends_a_session_and_the_log_names_the_actor(support: Client, profile: Profile) -> None:
    signed_in(profile)
    ended = SignInSession.objects.get()
    signed_in(profile)

    _revoke(support, ended)

    ended.refresh_from_db()
    assert ended.revoked_reason == SignInSession.Reason.STAFF
    assert SignInSession.objects.filter(revoked_at=None).count() == 1
    entry = LogEntry.objects.get()
    assert (entry.object_id, entry.user.is_staff) == (str(ended.pk), True)


def test_staff_without_the_permission_ends_nothing(profile: Profile) -> None:
    signed_in(profile)

    _revoke(_staff_client(), SignInSession.objects.get())

    assert SignInSession.objects.get().revoked_at is None


def test_a_password_alone_does_not_open_the_admin(profile: Profile) -> None:
    signed_in(profile)
    client = Client()
    client.force_login(
        User.objects.create_user("hasty", is_staff=True, is_superuser=True),
        backend="django.contrib.auth.backends.ModelBackend",
    )

    assert client.get(SESSIONS).status_code == 302
