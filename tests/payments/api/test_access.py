"""Who may speak to payments, by which methods, with which kinds of body, and how often."""

import secrets
from typing import Any

import pytest
from rest_framework.test import APIClient

from tests.factories import UserFactory
from tests.fakes.billing import FakeBilling
from tests.payments.api.spec import CANCEL, CUSTOMER, PATHS, UPSERT
from tests.payments.rows import all_rows
from tests.relay.api.conftest import ApiResponse, Wallet, network_address, wallet_of
from tests.relay.api.test_execute import assert_problem
from users.models import User

pytestmark = pytest.mark.django_db
each_path = pytest.mark.parametrize(("path", "method"), PATHS.items())
BODIES: dict[str, Any] = {UPSERT: {"subscriptionCost": 2550}, CANCEL: {"cancelImmediately": True}}


def _ask(wallet: Wallet, path: str, method: str, **headers: str) -> ApiResponse:
    options = {"data": BODIES[path], "content_type": "application/json"} if path in BODIES else {}
    return wallet.send(method, path, headers=headers, **options)


@each_path
@pytest.mark.parametrize("slash", ["", "/"])
def test_without_a_token_the_error_requires_a_sign_in(
    fake: FakeBilling, anonymous: Wallet, path: str, method: str, slash: str
) -> None:
    response = _ask(anonymous, path, method) if not slash else anonymous.send(method, path + slash)
    assert_problem(response, 401, "not-authenticated")
    assert response.headers["WWW-Authenticate"] == "Bearer"
    assert not fake.calls


@each_path
def test_a_token_of_another_issuer_is_refused(
    fake: FakeBilling, wallet: Wallet, path: str, method: str
) -> None:
    header, claims, signature = str(wallet.token).split(".")
    _, others, _ = str(wallet_of(UserFactory.create()).token).split(".")
    before = all_rows()
    for forged in (f"{header}.{others}.{signature}", f"{header}.{claims}.{secrets.token_hex(43)}"):
        response = _ask(Wallet(forged, wallet.address), path, method)
        assert response.status == 401
        assert response.headers["Content-Type"] == "application/problem+json"
    assert not fake.calls
    assert all_rows() == before


@each_path
def test_a_bare_token_is_accepted(
    fake: FakeBilling, user: User, wallet: Wallet, path: str, method: str
) -> None:
    response = _ask(Wallet(None, wallet.address), path, method, Authorization=str(wallet.token))
    assert response.status in {200, 402, 404}


@each_path
def test_staff_without_a_profile_are_refused(fake: FakeBilling, path: str, method: str) -> None:
    client = APIClient(REMOTE_ADDR=network_address())
    client.force_authenticate(UserFactory.create(profile_address=None, is_staff=True))
    before = all_rows()
    response = getattr(client, method)(path, BODIES.get(path, {}), format="json" if path in BODIES else None)
    assert (response.status_code, response.json()["code"]) == (401, "not-authenticated")
    assert not fake.calls
    assert all_rows() == before


@each_path
@pytest.mark.parametrize("slash", ["", "/"])
def test_other_methods_are_refused(
    fake: FakeBilling, wallet: Wallet, path: str, method: str, slash: str
) -> None:
    for other in {"get", "post", "put", "patch", "delete"} - {method}:
        response = wallet.send(other, path + slash)
        assert_problem(response, 405, "method-not-allowed")
        assert method.upper() in response.headers["Allow"]
    assert not fake.calls


@pytest.mark.parametrize("path", [CUSTOMER, UPSERT, CANCEL])
def test_only_json_is_read(fake: FakeBilling, wallet: Wallet, path: str) -> None:
    before = all_rows()
    for content_type in (
        "application/x-www-form-urlencoded",
        "text/plain",
        "multipart/form-data; boundary=b",
    ):
        response = wallet.send(PATHS[path], path, data="a=1", content_type=content_type)
        assert_problem(response, 415, "unsupported-media-type")
        if path == CUSTOMER:
            continue
        # Nothing was sent that could be of the wrong type.
        response = wallet.send(PATHS[path], path, data=b"", content_type=content_type)
        assert_problem(response, 400, "invalid-request")
    assert not fake.calls
    assert all_rows() == before


def test_a_customer_is_made_with_or_without_a_body(fake: FakeBilling, wallet: Wallet) -> None:
    responses = [
        wallet.send("post", CUSTOMER),
        wallet.post(CUSTOMER, {}),
        wallet.send("post", CUSTOMER, data=b"", content_type="text/plain"),
    ]
    assert [response.status for response in responses] == [200] * 3
    assert len({response.body["paymentsCustomerId"] for response in responses}) == 1
    assert fake.calls["create_customer"] == 1


def test_the_rate_limit_counts_each_user_separately(
    fake: FakeBilling, wallet: Wallet, user: User, settings: Any
) -> None:
    settings.BILLING_RATE = "3/hour"
    results = [_ask(wallet, path, method) for path, method in PATHS.items()]
    assert [response.status for response in results[:3]] == [200, 200, 402]
    assert_problem(results[3], 429, "too-many-requests")
    assert 3_000 < int(results[3].headers["Retry-After"]) <= 3_601
    assert wallet_of(UserFactory.create()).send("post", CUSTOMER).status == 200
    assert Wallet(wallet.token, network_address()).send("post", CUSTOMER).status == 429
