"""Who may use the relay's API."""

from collections.abc import Callable

import pytest
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries
from rest_framework.test import APIClient

from devstack.world.profiles import Profile
from gateway.chain.lsp25 import RelayCall
from relay.models import RelayTransaction
from tests.factories import UserFactory
from tests.relay.api.conftest import Wallet, execute_body, network_address
from tests.relay.api.test_bodies import QUOTA, STATUS
from tests.relay.api.test_execute import EXECUTE, assert_problem
from tests.relay.api.test_prepare import PREPARE
from tests.relay.api.test_quota import quota_body
from tests.relay.chain import FaultyClient
from tests.relay.conftest import Accept
from users.models import SignInSession, User

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("path", [EXECUTE, PREPARE, QUOTA, STATUS])
def test_without_a_token_the_response_is_401(anonymous: Wallet, path: str) -> None:
    response = anonymous.post(path, {})
    assert_problem(response, 401, "not-authenticated")
    assert response.headers["WWW-Authenticate"] == "Bearer"


def test_a_bare_token_is_accepted(wallet: Wallet, new_call: Callable[..., RelayCall]) -> None:
    body = execute_body(new_call())
    bare = Wallet(None, wallet.address)
    assert bare.post(EXECUTE, body, Authorization=str(wallet.token)).status == 200


@pytest.mark.parametrize("path", [EXECUTE, PREPARE, QUOTA, STATUS])
def test_staff_without_a_profile_have_nothing_to_relay(path: str) -> None:
    client = APIClient(REMOTE_ADDR=network_address())
    client.force_authenticate(UserFactory.create(profile_address=None, is_staff=True))
    response = client.post(path, {}, format="json")
    assert (response.status_code, response.json()["code"]) == (401, "not-authenticated")
    assert RelayTransaction.objects.count() == 0


def test_a_request_of_an_ended_session_is_refused_for_that_first(
    wallet: Wallet,
    profile: Profile,
    new_call: Callable[..., RelayCall],
    node: FaultyClient,
) -> None:
    bodies = {
        EXECUTE: execute_body(new_call()),
        PREPARE: {"transaction": {"abi": "0x11223344"}},
        QUOTA: quota_body(profile),
        STATUS: {"transactionHash": "0x" + 64 * "1"},
    }
    SignInSession.objects.update(revoked_at=timezone.now(), revoked_reason="SIGNED_OUT")
    for path, body in bodies.items():
        for sent in (body, {}):
            assert_problem(wallet.post(path, sent), 401, "session-ended")
    assert node.requests == 0


def test_an_ended_session_gets_no_hash_of_a_call_that_it_has_sent(
    wallet: Wallet, new_call: Callable[..., RelayCall]
) -> None:
    body = execute_body(new_call())
    assert wallet.post(EXECUTE, body).status == 200
    SignInSession.objects.update(revoked_at=timezone.now(), revoked_reason="SIGNED_OUT")

    assert_problem(wallet.post(EXECUTE, body), 401, "session-ended")
    assert RelayTransaction.objects.count() == 1


def test_a_closed_account_is_refused(wallet: Wallet, profile: Profile, user: User) -> None:
    User.objects.filter(pk=user.pk).update(is_active=False)
    bodies = {QUOTA: quota_body(profile), PREPARE: {"transaction": {"abi": "0x11223344"}}}
    for path in (EXECUTE, PREPARE, QUOTA, STATUS):
        body = bodies.get(path, {"transactionHash": "0x" + 64 * "1"})
        assert_problem(wallet.post(path, body), 401, "account-inactive")


def test_waiting_for_a_transaction_has_the_same_checks_as_reading_its_status(
    wallet: Wallet, anonymous: Wallet, node: FaultyClient
) -> None:
    path = "/api/relay/transactions/0x" + 64 * "1" + "?wait=20"
    assert_problem(anonymous.send("get", path), 401, "not-authenticated")
    SignInSession.objects.update(revoked_at=timezone.now(), revoked_reason="SIGNED_OUT")
    assert_problem(wallet.send("get", path), 401, "session-ended")


def test_quota_and_status_are_one_statement_each_with_their_session(
    wallet: Wallet,
    profile: Profile,
    accept: Accept,
    node: FaultyClient,
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    row, before = accept(), node.requests
    with django_assert_num_queries(1):
        assert wallet.post(STATUS, {"transactionHash": row.transaction_hash}).status == 200
    assert node.requests == before
    with django_assert_num_queries(1):
        assert wallet.post(QUOTA, quota_body(profile)).status == 200
    assert node.requests == before + 1
