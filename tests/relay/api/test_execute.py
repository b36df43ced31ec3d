"""POST /api/relay/execute on the wire."""

import random
import secrets
from collections.abc import Callable
from typing import Any

import pytest
from pytest_django import Settings

from credits.services import entries
from devstack.world.profiles import Profile
from gateway.chain.lsp25 import RelayCall
from relay.models import Attempt, Relayer, RelayTransaction
from tests.factories import random_address
from tests.relay.api.conftest import ApiResponse, Wallet, execute_body
from tests.relay.chain import node_away
from tests.relay.rows import everything
from tests.relay.signing import set_data_payload, window
from tests.relay.workers import later
from users.models import User

pytestmark = pytest.mark.django_db
EXECUTE = "/api/relay/execute"


def assert_problem(answer: ApiResponse, status: int, code: str) -> dict[str, Any]:
    """The response is a whole problem document of this code; return its members beyond the common ones."""
    assert (answer.status, answer.body.get("code")) == (status, code), answer.body
    assert answer.headers["Content-Type"] == "application/problem+json"
    body = dict(answer.body)
    common = {name: body.pop(name) for name in ("type", "title", "status", "code", "detail", "requestId")}
    assert (common["status"], common["type"]) == (status, f"/problems/{code}")
    assert common["requestId"] == answer.headers["X-Request-ID"]
    assert common["title"]
    assert common["detail"]
    return body


def test_the_response_to_a_call_is_only_its_hash(wallet: Wallet, new_call: Callable[..., RelayCall]) -> None:
    response = wallet.post(EXECUTE, execute_body(new_call()))
    assert (response.status, response.headers["Content-Type"]) == (200, "application/json")
    assert response.body == {"transactionHash": Attempt.objects.get().transaction_hash}
    assert RelayTransaction.objects.get().request_id == response.headers["X-Request-ID"]


NONCES: dict[str, Callable[[int], Any]] = {
    "JSON integer": int,
    "decimal text": str,
    "hex": hex,
    "upper-case hex": lambda nonce: f"0x{nonce:X}",
    "64 hex digits": lambda nonce: f"0x{nonce:064x}",
}


@pytest.mark.parametrize("channel", [0, 2**128 - 1])
def test_a_nonce_is_accepted_in_every_notation(
    wallet: Wallet, new_call: Callable[..., RelayCall], channel: int
) -> None:
    call = new_call(channel=channel)
    responses = [
        wallet.post(EXECUTE, execute_body(call, nonce=spell(call.relay_nonce))) for spell in NONCES.values()
    ]
    assert [response.status for response in responses] == [200] * len(NONCES)
    assert {response.body["transactionHash"] for response in responses} == {
        Attempt.objects.get().transaction_hash
    }
    assert RelayTransaction.objects.get().relay_nonce == call.relay_nonce


def test_a_call_without_validity_timestamps_is_accepted_in_every_notation(
    wallet: Wallet, new_call: Callable[..., RelayCall]
) -> None:
    spellings = [{}, *({"validityTimestamps": one} for one in (None, 0, "0", "0x0", "0x" + "0" * 64))]
    for channel, changes in enumerate(spellings):
        response = wallet.post(EXECUTE, execute_body(new_call(channel=channel), **changes))
        assert response.status == 200, response.body
    assert list(RelayTransaction.objects.values_list("validity", flat=True)) == [0] * len(spellings)


def test_a_window_of_two_timestamps_is_understood(wallet: Wallet, new_call: Callable[..., RelayCall]) -> None:
    validity = window(1, int(later(3600).timestamp()))
    call = new_call(validity=validity)
    for spelling in (validity, str(validity), hex(validity), f"0x{validity:064x}"):
        assert wallet.post(EXECUTE, execute_body(call, validityTimestamps=spelling)).status == 200
    assert RelayTransaction.objects.get().validity == validity


def test_addresses_and_bytes_are_read_in_any_casing(
    wallet: Wallet, new_call: Callable[..., RelayCall], profile: Profile
) -> None:
    call = new_call()
    body = execute_body(call, abi="0x" + call.payload.hex().upper(), signature="0X" + call.signature.hex())
    body["keyManagerAddress"] = call.key_manager.lower()
    # Some wallets send the profile along.
    body["address"] = profile.profile_address.lower()
    assert wallet.post(EXECUTE, body).status == 200
    assert RelayTransaction.objects.get().key_manager_address == call.key_manager


def test_another_profile_in_the_body_is_refused(
    wallet: Wallet, user: User, new_call: Callable[..., RelayCall]
) -> None:
    body = {**execute_body(new_call()), "address": random_address()}
    before = everything()
    members = assert_problem(wallet.post(EXECUTE, body), 403, "not-your-profile")
    assert members == {"profile": user.profile_address}
    assert everything() == before


def test_too_few_credits_are_a_402_with_the_numbers(
    wallet: Wallet, user: User, new_call: Callable[..., RelayCall]
) -> None:
    entries.adjust(user=user, credits=-9_999, key=secrets.token_hex(8), actor=None, reason="one is left")
    before = everything()
    members = assert_problem(wallet.post(EXECUTE, execute_body(new_call())), 402, "insufficient-credits")
    assert members["required"] > 1
    assert (members["available"], members["debtLimit"]) == (1, 0)
    assert everything() == before


def test_a_call_refused_by_the_chain_is_422(wallet: Wallet, new_call: Callable[..., RelayCall]) -> None:
    payload = secrets.token_bytes(4) + bytes(32)
    response = wallet.post(EXECUTE, execute_body(new_call(payload=payload)))
    members = assert_problem(response, 422, "payload-function-not-supported")
    assert members == {"selector": "0x" + payload[:4].hex()}


@pytest.mark.parametrize("fault", ["node away", "relayers busy"])
def test_a_temporary_error_is_a_503_with_retry_after(
    wallet: Wallet, new_call: Callable[..., RelayCall], settings: Settings, fault: str
) -> None:
    body = execute_body(new_call())
    if fault == "node away":
        with node_away():
            response = wallet.post(EXECUTE, body)
        assert_problem(response, 503, "chain-unavailable")
        assert response.headers["Retry-After"] == "2"
    else:
        Relayer.objects.update(is_active=False)
        settings.CHAIN_BLOCK_SECONDS, settings.RELAY_TRACK_SECONDS = 60, random.randint(2, 40)
        response = wallet.post(EXECUTE, body)
        assert_problem(response, 503, "relayers-busy")
        assert response.headers["Retry-After"] == str(settings.RELAY_TRACK_SECONDS + 1)


def test_each_caller_has_a_rate_limit_of_its_own(
    wallet: Wallet, new_call: Callable[..., RelayCall], settings: Settings
) -> None:
    settings.RELAY_EXECUTE_RATE = "2/hour"
    body = execute_body(new_call())
    statuses = [wallet.post(EXECUTE, body).status for _ in range(2)]
    response = wallet.post(EXECUTE, body)
    assert statuses == [200, 200]
    assert_problem(response, 429, "too-many-requests")
    assert 3_000 < int(response.headers["Retry-After"]) <= 3_601


def test_the_longest_payload_is_relayed_and_one_byte_more_is_not(
    wallet: Wallet, new_call: Callable[..., RelayCall], settings: Settings
) -> None:
    cap = settings.RELAY_MAX_PAYLOAD_BYTES
    call = new_call(payload=set_data_payload(b"\x01").ljust(cap, b"\0"))
    assert wallet.post(EXECUTE, execute_body(call)).status == 200
    response = wallet.post(EXECUTE, execute_body(call, abi="0x" + call.payload.hex() + "00"))
    members = assert_problem(response, 400, "invalid-request")
    assert [fault["pointer"] for fault in members["errors"]] == ["/transaction/abi"]
