"""The whole way of a wallet over HTTP, in the shapes that are promised."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.conf import settings
from rest_framework.test import APIClient

from tests.factories import random_address
from tests.fakes.chain import FakeChain
from tests.fakes.profiles import Controller, Profile
from tests.users.auth_client import Wallet, personal_sign
from users.models import SignInChallenge, SignInSession, User

pytestmark = pytest.mark.django_db


def test_nonce_verify_me_refresh_logout(wallet: Wallet, profile: Profile) -> None:
    challenge = wallet.ask_nonce()
    assert set(challenge) == {"nonce", "message", "expiresAt"}
    assert challenge["nonce"] in challenge["message"]
    assert profile.profile_address in challenge["message"]
    left = datetime.fromisoformat(challenge["expiresAt"]) - datetime.now(UTC)
    assert timedelta(minutes=4) < left <= timedelta(minutes=5)

    signature = "0x" + personal_sign(profile.controller, challenge["message"]).hex()
    pair = wallet.post("verify", nonce=challenge["nonce"], signature=signature)
    assert set(pair) == {"access", "refresh", "expiresIn", "address"}
    assert (pair["expiresIn"], pair["address"]) == (600, profile.profile_address)

    session = SignInSession.objects.get()
    me = wallet.me(pair["access"])
    assert me["address"] == profile.profile_address
    assert me["controller"] == profile.controller.address
    assert me["sessionId"] == str(session.pk)
    assert datetime.fromisoformat(me["sessionExpiresAt"]) == session.expires_at
    assert me["issuer"] == settings.SIMPLE_JWT["ISSUER"]

    following = wallet.refresh(pair["refresh"])
    assert set(following) == set(pair)
    assert wallet.me(following["access"])["sessionId"] == me["sessionId"]

    client = wallet.client
    response = client.post("/api/auth/logout", HTTP_AUTHORIZATION=f"Bearer {following['access']}")
    assert (response.status_code, response.json()) == (200, {"signedOut": True})
    assert wallet.me(pair["access"])["code"] == "session-ended"
    assert wallet.me(following["access"])["code"] == "session-ended"
    assert wallet.refresh(following["refresh"])["code"] == "session-ended"


def test_an_address_in_any_casing_is_the_same_profile(wallet: Wallet, profile: Profile) -> None:
    challenge = wallet.ask_nonce(profile.profile_address.lower())
    signature = personal_sign(profile.controller, challenge["message"])
    pair = wallet.post(
        "verify",
        nonce=challenge["nonce"],
        signature="0x" + signature.hex().upper(),
        address="0x" + profile.profile_address[2:].upper(),
    )

    assert pair["address"] == profile.profile_address == User.objects.get().profile_address


def test_null_equals_an_omitted_member(wallet: Wallet) -> None:
    challenge = wallet.ask_nonce()
    signature = "0x" + personal_sign(wallet.profile.controller, challenge["message"]).hex()
    pair = wallet.post("verify", nonce=challenge["nonce"], signature=signature, address=None)
    response = wallet.client.post(
        "/api/auth/logout", {"refresh": None}, format="json", HTTP_AUTHORIZATION=f"Bearer {pair['access']}"
    )

    assert (response.status_code, response.json()) == (200, {"signedOut": True})


def test_an_access_token_in_the_place_of_a_refresh_token_is_refused_as_such(wallet: Wallet) -> None:
    pair = wallet.verify()

    refused = wallet.post("refresh", refresh=pair["access"])

    assert (refused["status"], refused["code"]) == (400, "invalid-request")
    assert refused["errors"][0]["pointer"] == "/refresh"
    assert "This is an access token." in refused["errors"][0]["detail"]
    assert wallet.refresh(pair["refresh"])["access"]


@pytest.mark.parametrize("path", ["nonce", "verify", "refresh", "logout", "me"])
def test_paths_work_with_and_without_a_trailing_slash(client: APIClient, path: str, services: Any) -> None:
    ask = client.get if path == "me" else client.post
    plain, slashed = ask(f"/api/auth/{path}"), ask(f"/api/auth/{path}/")

    assert plain.status_code == slashed.status_code
    assert plain.json()["code"] == slashed.json()["code"]
    assert plain.json()["code"] in {"invalid-request", "not-authenticated"}


@pytest.mark.parametrize(
    "body",
    [{}, {"address": None}, {"address": 5}, {"address": "0x12"}, {"address": "vitalik.eth"}, [], "text"],
)
def test_an_invalid_body_creates_no_challenge(client: APIClient, body: Any, services: Any) -> None:
    response = client.post("/api/auth/nonce", body, format="json")

    assert (response.status_code, response.json()["code"]) == (400, "invalid-request")
    assert not SignInChallenge.objects.exists()


def test_a_form_is_not_json(client: APIClient, services: Any) -> None:
    response = client.post("/api/auth/nonce", "address=0x", content_type="application/x-www-form-urlencoded")

    assert (response.status_code, response.json()["code"]) == (415, "unsupported-media-type")


def test_responses_for_one_caller_are_not_cached(wallet: Wallet) -> None:
    response = wallet.client.post(
        "/api/auth/nonce", {"address": wallet.profile.profile_address}, format="json"
    )

    assert response.headers["Cache-Control"] == "no-store"


def test_the_keys_are_public_and_may_be_kept_for_a_while(client: APIClient) -> None:
    response = client.get("/.well-known/jwks.json")

    assert response.status_code == 200
    assert response.headers["Cache-Control"] == "public, max-age=300"
    (key,) = response.json()["keys"]
    assert "d" not in key


def test_each_refusal_leaves_as_its_own_problem(wallet: Wallet, chain: FakeChain) -> None:
    unknown = wallet.post("verify", nonce="A" * 22, signature="0x" + "11" * 64 + "1b")
    no_controller = wallet.verify(controller=Controller())
    malformed = wallet.post("verify", nonce="A" * 22, signature="0x1234")
    challenge = wallet.ask_nonce()
    signature = "0x" + personal_sign(wallet.profile.controller, challenge["message"]).hex()
    foreign = wallet.post("verify", nonce=challenge["nonce"], signature=signature, address=random_address())
    with chain.away():
        away = wallet.verify()

    assert [
        (problem["status"], problem["code"]) for problem in (unknown, no_controller, malformed, foreign, away)
    ] == [
        (401, "nonce-unknown"),
        (401, "signature-not-by-controller"),
        (400, "signature-malformed"),
        (401, "nonce-foreign"),
        (503, "chain-unavailable"),
    ]
    assert not SignInSession.objects.exists()


def test_a_503_response_has_retry_after(wallet: Wallet, chain: FakeChain) -> None:
    pair = wallet.verify()
    with chain.away():
        response = wallet.client.post("/api/auth/refresh", {"refresh": pair["refresh"]}, format="json")

    assert (response.status_code, response.json()["code"]) == (503, "chain-unavailable")
    assert response.headers["Retry-After"] == "2"


def test_a_stale_access_token_does_not_prevent_a_sign_in(wallet: Wallet) -> None:
    wallet.client.credentials(HTTP_AUTHORIZATION="Bearer stale")

    assert wallet.verify()["address"] == wallet.profile.profile_address


@pytest.mark.parametrize(
    ("header", "origin"),
    [
        ("https://Wallet.example", "https://wallet.example"),
        ("chrome-extension://abcdefgh", "chrome-extension://abcdefgh"),
        ("null", ""),
        ("https://wallet.example/path", ""),
        ("https://" + "a" * 200, ""),
        ("", ""),
    ],
    ids=["browser", "extension", "null", "no origin", "too long", "none"],
)
def test_a_session_keeps_the_origin_of_the_wallet_app(wallet: Wallet, header: str, origin: str) -> None:
    wallet.client.credentials(HTTP_ORIGIN=header)
    wallet.verify()
    assert SignInSession.objects.get().origin == origin
