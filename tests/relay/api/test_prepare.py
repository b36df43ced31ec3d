"""POST /api/relay/prepare on the wire: the data to sign, the cost, and the reason of a refusal."""

import secrets
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest
from django.utils import timezone

from credits.services import entries
from devstack.world.profiles import Profile
from gateway.staff.pauses import switch
from relay.models import RelayTransaction
from relay.queries.calls import RELAY
from tests.factories import random_address
from tests.relay.api.conftest import Wallet
from tests.relay.api.test_bodies import with_member
from tests.relay.api.test_execute import EXECUTE, assert_problem
from tests.relay.chain import node_away
from tests.relay.conftest import Accept
from tests.relay.rows import everything
from tests.relay.signing import execute_payload, set_data_payload, sign_digest, window
from users.models import User

pytestmark = pytest.mark.django_db
PREPARE = "/api/relay/prepare"


def signed(prepared: dict[str, Any], private_key: str) -> dict[str, Any]:
    """Return the body of execute for what was prepared, signed as a wallet would."""
    signature = sign_digest(private_key, bytes.fromhex(prepared["hash"][2:]))
    transaction = {**prepared["transaction"], "signature": "0x" + signature.hex()}
    return {"keyManagerAddress": prepared["keyManagerAddress"], "transaction": transaction}


def codes(prepared: dict[str, Any]) -> list[str]:
    return [refusal["code"] for refusal in prepared["refusals"]]


@pytest.mark.parametrize(
    ("transaction", "channel", "validity"),
    [
        ({"abi": "0x" + set_data_payload(b"12 bytes").hex()}, 0, 0),
        ({"to": random_address().lower(), "value": "5", "data": None}, 7, window(0, 2**40)),
        ({"to": random_address(), "data": "0x" + "11" * 37}, 2**128 - 1, 0),
    ],
)
def test_a_prepared_call_is_executed_once_it_is_signed(
    wallet: Wallet,
    profile: Profile,
    accept: Accept,
    settle: Callable[[], int],
    transaction: dict[str, Any],
    channel: int,
    validity: int,
) -> None:
    before = everything()
    body = {
        "transaction": transaction,
        "channel": channel,
        "validityTimestamps": str(validity),
        "quote": False,
    }
    prepared = wallet.post(PREPARE, body).body
    assert (codes(prepared), prepared["quote"], everything()) == ([], None, before)
    assert prepared["controller"] == profile.controller.address
    response = wallet.post(EXECUTE, signed(prepared, profile.controller.private_key))
    assert response.status == 200, response.body
    row = RelayTransaction.objects.get()
    assert (row.channel, row.validity, row.digest) == (channel, validity, prepared["hash"])
    if "to" in transaction:
        data = bytes.fromhex((transaction["data"] or "0x")[2:])
        assert bytes(row.payload) == execute_payload(
            transaction["to"], int(transaction.get("value", 0)), data
        )
    assert row.hold.amount <= prepared["highestCost"] <= 2 * row.hold.amount
    assert row.gas_limit <= prepared["gasLimit"]
    # The next one is prepared behind it.
    assert int(wallet.post(PREPARE, body).body["transaction"]["nonce"]) == row.relay_nonce + 1
    settle()
    row.refresh_from_db()
    assert row.status == "Success"
    assert row.real_cost <= prepared["expectedCost"] <= 2 * row.real_cost


def test_a_call_is_executed_with_the_quote_in_the_header(wallet: Wallet, profile: Profile) -> None:
    before = timezone.now().timestamp()
    prepared = wallet.post(PREPARE, {"transaction": {"abi": "0x" + set_data_payload().hex()}}).body
    quote, body = prepared["quote"], signed(prepared, profile.controller.private_key)
    assert (quote["cost"], prepared["quoteRefusal"]) == (prepared["highestCost"], None)
    assert before + 59 <= quote["expiresAt"] <= before + 65
    malformed = wallet.post(EXECUTE, body, **{"Relay-Quote": "mine"})
    assert [fault["pointer"] for fault in assert_problem(malformed, 400, "invalid-request")["errors"]] == [""]
    unknown = wallet.post(EXECUTE, body, **{"Relay-Quote": str(uuid4())})
    assert assert_problem(unknown, 409, "quote-not-found") == {}
    assert not RelayTransaction.objects.exists()
    response = wallet.post(EXECUTE, body, **{"Relay-Quote": quote["id"]})
    assert response.status == 200, response.body
    assert RelayTransaction.objects.get().quoted_cost == quote["cost"]


def test_each_reason_that_execute_would_give_is_given_and_nothing_changes(wallet: Wallet, user: User) -> None:
    switch(RELAY, is_paused=True, actor=user, reason="the chain forks")
    entries.adjust(user=user, credits=-9_999, key=secrets.token_hex(8), actor=user, reason="spent")
    before = everything()
    cases: list[tuple[dict[str, Any], list[str]]] = [
        ({}, ["insufficient-credits"]),
        ({"validityTimestamps": window(0, 1)}, ["relay-call-expired", "insufficient-credits"]),
        ({"controller": random_address()}, ["signer-not-a-controller"]),
        ({"transaction": {"to": random_address(), "value": str(10**30)}}, ["profile-balance-too-low"]),
    ]
    for changes, expected in cases:
        response = wallet.post(PREPARE, {"transaction": {"abi": "0x" + set_data_payload().hex()}, **changes})
        assert (response.status, codes(response.body)) == (200, ["relay-paused", *expected])
        assert all(refusal["type"] == f"/problems/{refusal['code']}" for refusal in response.body["refusals"])
        assert (response.body["highestCost"] is None) == ("insufficient-credits" not in expected)
    assert everything() == before


def test_the_nonce_of_a_call_that_is_about_to_fail_is_the_next_one_again(
    wallet: Wallet, accept: Accept
) -> None:
    nonce = accept().relay_nonce
    body = {"transaction": {"abi": "0x" + set_data_payload().hex()}, "quote": False}
    assert wallet.post(PREPARE, body).body["transaction"]["nonce"] == str(nonce + 1)
    RelayTransaction.objects.update(terminal_status="Failed")
    prepared = wallet.post(PREPARE, body).body
    assert (prepared["transaction"]["nonce"], codes(prepared)) == (str(nonce), ["relay-nonce-taken"])


def test_a_call_is_valid_for_an_hour_by_default(wallet: Wallet) -> None:
    before = int(timezone.now().timestamp())
    body = {"transaction": {"abi": "0x" + set_data_payload().hex()}, "quote": False}
    for sent in ({}, {"validityTimestamps": None}):
        prepared = wallet.post(PREPARE, {**body, **sent}).body
        until = int(prepared["transaction"]["validityTimestamps"])
        assert before + 3600 <= until <= before + 3660
    for asked in (0, 2**40, window(5, 2**40)):
        prepared = wallet.post(PREPARE, {**body, "validityTimestamps": asked}).body
        assert prepared["transaction"]["validityTimestamps"] == str(int(str(asked), 0))


@pytest.mark.parametrize("pointer", ["validityTimestamp", "transaction/gas", "transaction/to~"])
def test_a_member_that_prepare_does_not_know_is_refused_by_name(wallet: Wallet, pointer: str) -> None:
    before = everything()
    body = with_member({"transaction": {"abi": "0x" + set_data_payload().hex()}}, pointer, 5)

    members = assert_problem(wallet.post(PREPARE, body), 400, "invalid-request")

    assert members["errors"] == [
        {
            "pointer": f"/{pointer}".replace("~", "~0"),
            "code": "unknown",
            "detail": "There is no member of this name.",
        }
    ]
    assert everything() == before


SHAPES: dict[str, list[Any]] = {
    "channel": [-1, 2**128, "soon", 1.5],
    "controller": ["0x12", 5],
    "transaction": [None, 5, []],
    "transaction/abi": [None, "0x", 5],
    "validityTimestamps": [hex(2 << 128 | 1)],
}


def test_each_error_has_its_pointer(wallet: Wallet) -> None:
    for pointer, values in SHAPES.items():
        for value in values:
            body = with_member({"transaction": {"abi": "0x11223344"}}, pointer, value)
            members = assert_problem(wallet.post(PREPARE, body), 400, "invalid-request")
            assert [fault["pointer"] for fault in members["errors"]] == [f"/{pointer}"], value
    both = {"transaction": {"abi": "0x11223344", "value": 1}}
    members = assert_problem(wallet.post(PREPARE, both), 400, "invalid-request")
    assert [fault["pointer"] for fault in members["errors"]] == ["/transaction/value"]


def test_a_node_outage_is_not_a_refusal_of_the_call(wallet: Wallet) -> None:
    with node_away():
        response = wallet.post(PREPARE, {"transaction": {"abi": "0x11223344"}})
    assert_problem(response, 503, "chain-unavailable")
