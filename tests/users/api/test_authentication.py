"""The Authorization header: which tokens are accepted, in how many queries, and how others are refused."""

import secrets
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils.timezone import now
from rest_framework.test import APIClient

from tests.fakes.profiles import Profile
from tests.users.auth_client import Wallet, signed_in
from tests.users.forged_tokens import forged_token
from users.models import SignInSession, User
from users.services import sessions
from users.services.sessions import TokenPair

pytestmark = pytest.mark.django_db
ME = "/api/auth/me"


@pytest.fixture
def pair(profile: Profile) -> TokenPair:
    """The tokens of a signed-in profile."""
    return signed_in(profile)


def _ask(client: APIClient, header: str) -> Any:
    return client.get(ME, HTTP_AUTHORIZATION=header)


@pytest.mark.parametrize("form", ["Bearer {}", "bearer {}", "BEARER  {}", "{}", " {} "])
def test_the_token_is_accepted_with_and_without_its_scheme(
    client: APIClient, pair: TokenPair, form: str
) -> None:
    response = _ask(client, form.format(pair.access))

    assert (response.status_code, response.json()["address"]) == (200, pair.profile_address)


@pytest.mark.parametrize("header", [None, "", "Bearer", "Bearer  "])
def test_a_request_without_a_token_is_not_authenticated(
    client: APIClient, header: str | None, db: None
) -> None:
    response = client.get(ME) if header is None else _ask(client, header)

    assert (response.status_code, response.json()["code"]) == (401, "not-authenticated")
    assert response.headers["WWW-Authenticate"] == "Bearer"
    assert response.headers["Content-Type"] == "application/problem+json"


@pytest.mark.parametrize("form", ["Token {}", "Basic {}", "Bearer {} {}", "{} {}"])
def test_another_scheme_and_two_tokens_are_refused(client: APIClient, pair: TokenPair, form: str) -> None:
    response = _ask(client, form.format(pair.access, pair.access))

    assert (response.status_code, response.json()["code"]) == (401, "access-token-malformed")


def test_authentication_costs_one_query(client: APIClient, pair: TokenPair) -> None:
    with CaptureQueriesContext(
        connection,
    ) as queries:
        response = _ask(client, f"Bearer {pair.access}")

    assert response.status_code == 200
    assert len(queries) == 1


def test_a_refresh_token_is_not_accepted_as_access_token(client: APIClient, pair: TokenPair) -> None:
    response = _ask(client, f"Bearer {pair.refresh}")

    assert (response.status_code, response.json()["code"]) == (401, "access-token-kind-refused")
    assert SignInSession.objects.get().revoked_at is None


def test_the_refusal_of_a_forged_token_names_its_defect(client: APIClient, pair: TokenPair) -> None:
    response = _ask(client, f"Bearer {forged_token(header={'kid': secrets.token_hex(8)})}")

    assert (response.status_code, response.json()["code"]) == (401, "access-token-key-unknown")


def test_an_ended_session_ends_its_access_tokens_at_once(client: APIClient, pair: TokenPair) -> None:
    session = SignInSession.objects.get()
    sessions.end(session_id=session.pk, reason=SignInSession.Reason.STAFF, now=now())

    response = _ask(client, f"Bearer {pair.access}")

    assert (response.status_code, response.json()["code"]) == (401, "session-ended")


def test_an_expired_or_deleted_session_invalidates_its_access_tokens(
    client: APIClient, pair: TokenPair
) -> None:
    SignInSession.objects.update(expires_at=now())
    assert _ask(client, f"Bearer {pair.access}").json()["code"] == "session-ended"

    SignInSession.objects.all().delete()
    assert _ask(client, f"Bearer {pair.access}").json()["code"] == "session-ended"


def test_a_token_that_names_another_users_session_is_refused(client: APIClient, pair: TokenPair) -> None:
    session = SignInSession.objects.get()
    stolen = forged_token(sid=str(session.pk), sub=str(session.user_id + 1))

    assert _ask(client, f"Bearer {stolen}").json()["code"] == "session-ended"
    own = forged_token(sid=str(session.pk), sub=str(session.user_id))
    assert _ask(client, f"Bearer {own}").status_code == 200


def test_a_closed_account_is_refused_at_once(client: APIClient, pair: TokenPair) -> None:
    User.objects.update(is_active=False)

    response = _ask(client, f"Bearer {pair.access}")

    assert (response.status_code, response.json()["code"]) == (401, "account-inactive")


def test_a_staff_session_cookie_does_not_authenticate(client: APIClient, db: None) -> None:
    staff = User.objects.create_superuser("boss", password=secrets.token_urlsafe(16))
    client.force_login(staff)

    assert client.get(ME).json()["code"] == "not-authenticated"


def test_signing_out_ends_the_named_session_of_the_same_user_too(wallet: Wallet, profile: Profile) -> None:
    here, there, third = signed_in(profile), signed_in(profile), signed_in(profile)

    wallet.client.post(
        "/api/auth/logout",
        {"refresh": there.refresh},
        format="json",
        HTTP_AUTHORIZATION=f"Bearer {here.access}",
    )

    ended = SignInSession.objects.exclude(revoked_at=None)
    assert {session.revoked_reason for session in ended} == {SignInSession.Reason.SIGNED_OUT}
    assert ended.count() == 2
    assert wallet.me(third.access)["address"] == profile.profile_address


def test_signing_out_does_not_end_a_session_of_another_user(
    wallet: Wallet, profile: Profile, chain: Any
) -> None:
    mine, theirs = signed_in(profile), signed_in(chain.create_profile())

    response = wallet.client.post(
        "/api/auth/logout",
        {"refresh": theirs.refresh},
        format="json",
        HTTP_AUTHORIZATION=f"Bearer {mine.access}",
    )

    assert response.status_code == 200
    assert wallet.me(theirs.access)["address"] == theirs.profile_address


def test_signing_out_needs_an_access_token(client: APIClient, pair: TokenPair) -> None:
    response = client.post("/api/auth/logout", {"refresh": pair.refresh}, format="json")

    assert (response.status_code, response.json()["code"]) == (401, "not-authenticated")
    assert SignInSession.objects.get().revoked_at is None
