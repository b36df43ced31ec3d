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


def test_one_session_is_ended_and_no_other(wallet: Wallet, profile: Profile, chain: FakeChain) -> None:
    first, second = wallet.verify(), wallet.verify()
    other = signed_in(chain.create_profile())
    ids = {
        row["isCurrent"]: row["sessionId"]
        for row in wallet.client.get(
            "/api/auth/sessions", HTTP_AUTHORIZATION=f"Bearer {first['access']}"
        ).json()["sessions"]
    }
    foreign = SignInSession.objects.exclude(user__profile_address=profile.profile_address).get()

    ended = [
        APIClient()
        .delete(f"/api/auth/sessions/{session}", HTTP_AUTHORIZATION=f"Bearer {first['access']}")
        .json()["sessionsEnded"]
        for session in (ids[False], ids[False], foreign.pk)
    ]

    assert ended == [1, 0, 0]
    assert wallet.me(second["access"])["code"] == "session-ended"
    assert wallet.refresh(second["refresh"])["code"] == "session-ended"
    assert "code" not in wallet.me(first["access"])
    assert "code" not in wallet.me(other.access)
