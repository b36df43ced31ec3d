"""Sign-in is counted per network address, and closed while nothing can be counted."""

import secrets
from typing import Any

import pytest
from rest_framework.test import APIClient

from devstack.ports import free_port
from tests.factories import random_address
from tests.fakes.chain import FakeChain
from tests.fakes.profiles import Profile
from users.models import SignInChallenge

pytestmark = pytest.mark.django_db


def _client() -> APIClient:
    return APIClient(REMOTE_ADDR=f"2001:db8:{secrets.token_hex(2)}:{secrets.token_hex(2)}::1")


def _nonce(client: APIClient, address: str) -> Any:
    return client.post("/api/auth/nonce", {"address": address}, format="json")


def test_one_network_address_gets_no_more_challenges_than_its_rate(
    settings: Any, services: Any, chain: FakeChain, trusted: None
) -> None:
    settings.AUTH_NONCE_RATE = "3/hour"
    client = _client()

    statuses = [_nonce(client, chain.create_profile().profile_address).status_code for _ in range(4)]

    assert statuses == [200, 200, 200, 429]
    assert SignInChallenge.objects.count() == 3
    assert _nonce(_client(), chain.create_profile().profile_address).status_code == 200


def test_other_callers_do_not_use_up_a_profiles_challenges(
    settings: Any, services: Any, profile: Profile
) -> None:
    settings.AUTH_NONCE_RATE = "3/hour"

    statuses = [_nonce(_client(), profile.profile_address).status_code for _ in range(5)]

    assert statuses == [200] * 5


@pytest.mark.parametrize(
    ("path", "setting", "body", "first"),
    [
        (
            "verify",
            "AUTH_VERIFY_RATE",
            {"nonce": "A" * 22, "signature": "0x" + "11" * 64 + "1b"},
            "nonce-unknown",
        ),
        ("refresh", "AUTH_REFRESH_RATE", {"refresh": "rt_nothing"}, "refresh-token-unknown"),
    ],
)
def test_guessing_is_counted(
    settings: Any, services: Any, path: str, setting: str, body: dict[str, str], first: str
) -> None:
    setattr(settings, setting, "2/hour")
    client = _client()

    responses = [client.post(f"/api/auth/{path}", body, format="json") for _ in range(3)]

    assert [response.json()["code"] for response in responses] == [first, first, "too-many-requests"]
    assert int(responses[-1].headers["Retry-After"]) > 60


@pytest.mark.parametrize("path", ["nonce", "verify", "refresh"])
def test_without_a_counter_sign_in_is_refused(settings: Any, path: str) -> None:
    settings.REDIS_URL = f"redis://127.0.0.1:{free_port()}/0"

    response = _client().post(f"/api/auth/{path}", {"address": random_address()}, format="json")

    assert (response.status_code, response.json()["code"]) == (503, "service-unavailable")
    assert response.headers["Retry-After"] == "5"
    assert not SignInChallenge.objects.exists()
