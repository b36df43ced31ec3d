"""POST /api/relay/transactionStatus and GET /api/relay/transactions/{hash} on the wire."""

import json
import secrets

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from relay.api.serializers import changed_statuses
from relay.models import RelayTransaction
from tests.database import as_owner
from tests.factories import UserFactory
from tests.relay.api.conftest import Wallet
from tests.relay.api.test_execute import assert_problem
from tests.relay.chain import Chain
from tests.relay.conftest import Accept, Settle
from tests.relay.workers import broadcast_all, track

pytestmark = pytest.mark.django_db
STATUS, TRANSACTIONS = "/api/relay/transactionStatus", "/api/relay/transactions"


@pytest.mark.parametrize("path", [STATUS, STATUS + "/"])
def test_a_call_is_followed_from_pending_to_success(
    wallet: Wallet, accept: Accept, chain: Chain, path: str
) -> None:
    row = accept()
    sender = row.profile_address

    def status() -> dict[str, object]:
        response = wallet.post(path, {"transactionHash": row.transaction_hash})
        assert (response.status, response.headers["Content-Type"]) == (200, "application/json")
        assert [type(value) for value in response.body.values()] == [
            *(str, str, int, int, int, str, str, str, int)
        ]
        return response.body

    expected = {
        "status": "Pending",
        "transactionSenderAddress": sender,
        "creditsUsed": row.expected_cost,
        "creditsBefore": 10_000,
        "creditsAfter": 10_000 - row.expected_cost,
        "failureCode": "",
        "failureDetail": "",
        "paidBy": "user",
        "chainId": row.chain_id,
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
        "failureCode": "",
        "failureDetail": "",
        "paidBy": "user",
        "chainId": row.chain_id,
    }


def test_a_call_that_failed_has_a_code_and_a_sentence_once_it_is_final(
    wallet: Wallet, accept: Accept, chain: Chain
) -> None:
    reason = secrets.token_hex(8)
    row = accept()
    RelayTransaction.objects.update(failure_code="target-reverted", failure_detail=f"It answered {reason}.")

    def failure() -> tuple[str, str]:
        responses = (
            wallet.post(STATUS, {"transactionHash": row.transaction_hash}),
            wallet.send("get", f"{TRANSACTIONS}/{row.transaction_hash}"),
        )
        (told,) = {(response.body["failureCode"], response.body["failureDetail"]) for response in responses}
        return told

    assert failure() == ("", "")
    RelayTransaction.objects.update(status="Failed", settled_at=timezone.now())
    assert failure() == ("target-reverted", f"It answered {reason}.")


def test_the_words_of_a_node_are_not_shown_to_the_owner_of_a_call(wallet: Wallet, accept: Accept) -> None:
    row = accept()
    RelayTransaction.objects.update(
        status="Cancelled",
        settled_at=timezone.now(),
        failure_code="account-nonce-lost",
        failure_detail="account 0x12 has 5 wei",
    )

    result = wallet.post(STATUS, {"transactionHash": row.transaction_hash}).body

    assert result["failureCode"] == "account-nonce-lost"
    assert result["failureDetail"].endswith("Nothing was charged; send the call again.")
    assert "0x12" not in result["failureDetail"]


def test_a_hash_in_upper_case_is_the_same(wallet: Wallet, accept: Accept) -> None:
    transaction_hash = accept().transaction_hash
    assert wallet.post(STATUS, {"transactionHash": "0x" + transaction_hash[2:].upper()}).status == 200


def test_a_get_returns_the_same_as_a_post_before_and_after_a_change(
    wallet: Wallet,
    accept: Accept,
    settle: Settle,
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    row, other = accept(), accept(channel=5)
    path = f"{TRANSACTIONS}/{row.transaction_hash}"
    with django_assert_num_queries(1):
        response = wallet.send("get", path + "?wait=20")
    assert response.body == wallet.post(STATUS, {"transactionHash": row.transaction_hash}).body
    shown = {(row.pk, "Pending"), (other.pk, "Pending")}
    with django_assert_num_queries(1):
        assert changed_statuses(shown) == {}
    settle()
    RelayTransaction.objects.filter(pk=other.pk).update(status="Pending", settled_at=None)
    with django_assert_num_queries(1):
        changed = changed_statuses(shown)
    assert changed.keys() == {(row.pk, "Pending")}
    assert json.loads(changed[row.pk, "Pending"]) == wallet.send("get", path).body
    assert wallet.send("get", path).body["status"] == "Success"


def test_only_transactions_in_progress_are_waited_for(wallet: Wallet, accept: Accept) -> None:
    row = accept()
    client = Client(headers={"Authorization": f"Bearer {wallet.token}"})

    def waits(query: str) -> int | None:
        response = client.get(f"{TRANSACTIONS}/{row.transaction_hash}{query}")
        assert response.status_code == 200
        wait = getattr(response, "wait", None)
        if wait is None:
            return None
        assert (wait.user_id, wait.shown) == (row.user_id, (row.pk, "Pending"))
        return int(wait.seconds)

    assert [waits(query) for query in ("?wait=7", "?wait=900", "?wait=0", "")] == [7, 20, None, None]
    RelayTransaction.objects.update(status="Success", settled_at=timezone.now())
    assert waits("?wait=7") is None


def test_an_invalid_wait_is_refused(wallet: Wallet, accept: Accept) -> None:
    transaction_hash = accept().transaction_hash
    for wait in ("soon", "-1", "1.5"):
        response = wallet.send("get", f"{TRANSACTIONS}/{transaction_hash}?wait={wait}")
        assert assert_problem(response, 400, "invalid-request")["errors"][0]["pointer"] == "/wait"


def test_transactions_of_others_are_not_found(wallet: Wallet, accept: Accept) -> None:
    row = accept()
    as_owner("UPDATE relay_relaytransaction SET user_id = %s", UserFactory.create().pk)
    for transaction_hash in (row.transaction_hash, "0x" + secrets.token_hex(32)):
        response = wallet.post(STATUS, {"transactionHash": transaction_hash})
        assert assert_problem(response, 404, "transaction-not-found") == {}
        response = wallet.send("get", f"{TRANSACTIONS}/{transaction_hash}?wait=20")
        assert assert_problem(response, 404, "transaction-not-found") == {}
