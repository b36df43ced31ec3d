"""POST /api/relay/transactionStatus on the wire."""

import secrets
from collections.abc import Callable

import pytest
from django.conf import settings

from relay.models import RelayTransaction
from tests.factories import UserFactory
from tests.relay.api.conftest import Wallet
from tests.relay.api.test_execute import assert_problem
from tests.relay.chain import Chain
from tests.relay.workers import broadcast_all, track

pytestmark = pytest.mark.django_db
STATUS = "/api/relay/transactionStatus"


@pytest.mark.parametrize("path", [STATUS, STATUS + "/"])
def test_a_call_is_followed_from_pending_to_success(
    wallet: Wallet, accept: Callable[..., RelayTransaction], chain: Chain, path: str
) -> None:
    row = accept()
    sender = row.profile_address

    def status() -> dict[str, object]:
        answer = wallet.post(path, {"transactionHash": row.transaction_hash})
        assert (answer.status, answer.headers["Content-Type"]) == (200, "application/json")
        assert [type(value) for value in answer.body.values()] == [str, str, int, int, int]
        return answer.body

    expected = {
        "status": "Pending",
        "transactionSenderAddress": sender,
        "creditsUsed": row.expected_cost,
        "creditsBefore": 10_000,
        "creditsAfter": 10_000 - row.expected_cost,
    }
    assert status() == expected
    broadcast_all()
    assert status() == {**expected, "status": "Submitted"}
    chain.mine(2)
    track()
    row.refresh_from_db()
    assert status() == {
        "status": "Success",
        "transactionSenderAddress": sender,
        "creditsUsed": row.real_cost,
        "creditsBefore": 10_000,
        "creditsAfter": 10_000 - row.real_cost,
    }


def test_a_call_whose_block_disappears_is_submitted_again(
    wallet: Wallet, accept: Callable[..., RelayTransaction], settle: Callable[[], int], chain: Chain
) -> None:
    row = accept()
    settle()
    chain.reorganise(settings.CONFIRMATIONS)
    track()
    answer = wallet.post(STATUS, {"transactionHash": row.transaction_hash})
    assert answer.body == {
        "status": "Submitted",
        "transactionSenderAddress": row.profile_address,
        "creditsUsed": row.expected_cost,
        "creditsBefore": 10_000,
        "creditsAfter": 10_000 - row.expected_cost,
    }


def test_a_hash_in_upper_case_is_the_same(wallet: Wallet, accept: Callable[..., RelayTransaction]) -> None:
    transaction_hash = accept().transaction_hash
    assert wallet.post(STATUS, {"transactionHash": "0x" + transaction_hash[2:].upper()}).status == 200


def test_transactions_of_others_are_not_found(
    wallet: Wallet, accept: Callable[..., RelayTransaction]
) -> None:
    row = accept()
    RelayTransaction.objects.update(user=UserFactory.create())
    for transaction_hash in (row.transaction_hash, "0x" + secrets.token_hex(32)):
        answer = wallet.post(STATUS, {"transactionHash": transaction_hash})
        assert assert_problem(answer, 404, "transaction-not-found") == {}
