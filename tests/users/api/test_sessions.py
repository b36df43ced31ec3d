"""A user sees where the profile is signed in, and signs out everywhere."""

import pytest
from rest_framework.test import APIClient

from tests.fakes.chain import FakeChain
from tests.fakes.profiles import Profile
from tests.users.auth_client import Wallet, signed_in
from users.models import SignInSession

pytestmark = pytest.mark.django_db


def test_sessions_are_listed_newest_use_first_and_only_ones_own(
    wallet: Wallet, profile: Profile, chain: FakeChain
) -> None:
    first, second = wallet.verify(), wallet.verify()
    wallet.refresh(first["refresh"])
    other = chain.create_profile()
    signed_in(other)

    listed = wallet.client.get("/api/auth/sessions", HTTP_AUTHORIZATION=f"Bearer {second['access']}").json()

    assert [row["isCurrent"] for row in listed["sessions"]] == [False, True]
    assert {row["sessionId"] for row in listed["sessions"]} == {
        str(session.pk)
        for session in SignInSession.objects.filter(user__profile_address=profile.profile_address)
    }
    assert {row["controller"] for row in listed["sessions"]} == {profile.controller.address}


def test_signing_out_everywhere_ends_every_session_of_the_profile_and_no_other(
    wallet: Wallet, profile: Profile, chain: FakeChain
) -> None:
    first, second = wallet.verify(), wallet.verify()
    other = signed_in(chain.create_profile())
    client = APIClient()

    response = client.delete("/api/auth/sessions", HTTP_AUTHORIZATION=f"Bearer {first['access']}")

    assert (response.status_code, response.json()) == (200, {"sessionsEnded": 2})
    for pair in (first, second):
        assert wallet.me(pair["access"])["code"] == "session-ended"
        assert wallet.refresh(pair["refresh"])["code"] == "session-ended"
    assert "code" not in wallet.me(other.access)
