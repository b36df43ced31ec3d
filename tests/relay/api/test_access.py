"""Who may use the relay's API."""

from collections.abc import Callable

import pytest
from rest_framework.test import APIClient

from gateway.chain.lsp25 import RelayCall
from relay.models import RelayTransaction
from tests.factories import UserFactory
from tests.relay.api.conftest import Wallet, execute_body, network_address
from tests.relay.api.test_bodies import QUOTA, STATUS
from tests.relay.api.test_execute import EXECUTE, assert_problem

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("path", [EXECUTE, QUOTA, STATUS])
def test_without_a_token_the_answer_is_401(anonymous: Wallet, path: str) -> None:
    answer = anonymous.post(path, {})
    assert_problem(answer, 401, "not-authenticated")
    assert answer.headers["WWW-Authenticate"] == "Bearer"


def test_a_bare_token_is_accepted(wallet: Wallet, new_call: Callable[..., RelayCall]) -> None:
    body = execute_body(new_call())
    bare = Wallet(None, wallet.address)
    assert bare.post(EXECUTE, body, Authorization=str(wallet.token)).status == 200


@pytest.mark.parametrize("path", [EXECUTE, QUOTA, STATUS])
def test_staff_without_a_profile_have_nothing_to_relay(path: str) -> None:
    client = APIClient(REMOTE_ADDR=network_address())
    client.force_authenticate(UserFactory.create(profile_address=None, is_staff=True))
    answer = client.post(path, {}, format="json")
    assert (answer.status_code, answer.json()["code"]) == (401, "not-authenticated")
    assert RelayTransaction.objects.count() == 0
