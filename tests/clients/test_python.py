"""The Python package: what it signs, what it sends again and with what, and what it refuses to sign."""

import secrets
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest
from eth_abi.abi import encode
from eth_account import Account
from eth_utils.crypto import keccak

from credit_relay_client import Call, Relay, RelayProblem, ServiceUnreachable, connect, encode_calls
from credit_relay_client.schema import Controller, FirstDeploymentRequest, TopUpTermsRequest
from gateway.chain.lsp6 import permissions_key
from gateway.chain.lsp25 import relay_digest
from gateway.chain.signatures import recover_address
from signer.removals import payload_of
from tests.clients.fake_service import (
    BUSY,
    BUY,
    CALL,
    DASHBOARD,
    EXECUTE,
    KEY_MANAGER,
    PREPARE,
    PROFILE,
    QUOTE,
    TOP_UP,
    FakeService,
    Reply,
    problem,
)
from tests.fakes.profiles import random_address


@pytest.fixture
def relay(service: FakeService) -> Relay:
    """A client of it."""
    return connect(service.url, Account.create(), patience_seconds=120)


def _nonces(service: FakeService) -> list[str]:
    return [body["transaction"]["nonce"] for body in service.bodies(EXECUTE)]


def test_several_calls_are_one_payload() -> None:
    calls = [CALL, Call(PROFILE, data=b"\x12" * 33)]
    columns = ([0, 0], [KEY_MANAGER, PROFILE], [1, 0], [b"", b"\x12" * 33])
    types = ["uint256[]", "address[]", "uint256[]", "bytes[]"]

    payload = encode_calls(calls)

    assert payload == keccak(text=f"executeBatch({','.join(types)})")[:4] + encode(types, columns)
    assert encode_calls([CALL]) == encode_calls(CALL)
    with pytest.raises(ValueError, match="no call"):
        encode_calls([])


def test_while_the_service_is_busy_or_away_exactly_the_same_call_is_sent_again(
    service: FakeService, relay: Relay
) -> None:
    service.replies[EXECUTE] = [BUSY, (502, {}), problem(422, "relay-call-not-yet-valid")]

    assert relay.send(PROFILE, CALL).wait()["status"] == "Success"

    first, *repeats = service.bodies(EXECUTE)
    assert repeats == [first, first, first]
    assert first["keyManagerAddress"] == KEY_MANAGER
    assert first["transaction"]["abi"] == "0x" + encode_calls(CALL).hex()
    assert 3500 < int(first["transaction"]["validityTimestamps"]) - time.time() <= 3600


def test_retries_are_limited_and_other_errors_are_not_retried(service: FakeService) -> None:
    impatient = connect(service.url, Account.create(), patience_seconds=-1)
    service.replies[EXECUTE] = [problem(402, "insufficient-credits", available=3), BUSY, (502, {})]

    with pytest.raises(RelayProblem, match="insufficient-credits") as refusal:
        impatient.send(PROFILE, CALL)
    with pytest.raises(RelayProblem) as busy:
        impatient.send(PROFILE, CALL)
    with pytest.raises(ServiceUnreachable):
        impatient.send(PROFILE, CALL)

    assert (refusal.value.code, refusal.value.members) == ("insufficient-credits", {"available": 3})
    assert busy.value.retry_after == 0.01
    assert len(service.bodies(EXECUTE)) == 3


def test_a_url_that_never_responded_is_given_up_after_seconds(
    service: FakeService, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, began_at = [0.0], time.monotonic()
    monkeypatch.setattr(
        "credit_relay_client.service.time",
        SimpleNamespace(
            monotonic=lambda: began_at + now[0],
            sleep=lambda seconds: now.__setitem__(0, now[0] + seconds),
        ),
    )
    wrong = connect(service.url + "/other", Account.create())
    service.replies["/other/api/auth/nonce"] = [(404, {})] * 100

    with pytest.raises(ServiceUnreachable, match=r"responded 404 to .*\. Is it the URL of the service\?"):
        wrong.sign_in(PROFILE)
    assert now[0] < 5

    now[0] = 0.0
    known = connect(service.url, Account.create())
    known.sign_in(PROFILE)
    service.replies[DASHBOARD] = [(502, {})] * 100
    with pytest.raises(ServiceUnreachable, match=r"responded 502 to [^.]*\.$"):
        known.dashboard(PROFILE)
    assert 25 < now[0] <= 60


@pytest.mark.parametrize("quote", [QUOTE, None], ids=["quoted", "not quoted"])
def test_a_sponsor_and_its_voucher_go_with_a_call_that_the_sponsor_pays(
    service: FakeService, relay: Relay, quote: dict[str, Any] | None
) -> None:
    voucher = secrets.token_hex(8)
    prepared = {**service.answer(PREPARE, {})[1], "quote": quote}
    service.replies[PREPARE] = [(200, prepared | {"sponsor": {"name": "my-dapp"}}), (200, prepared)]
    service.requests.clear()

    for _ in range(2):
        relay.send(PROFILE, CALL, sponsor="my-dapp", sponsor_fallback="user", sponsor_voucher=voucher)

    asked = {"sponsor": "my-dapp", "sponsorFallback": "user", "sponsorVoucher": voucher}
    assert [body | asked for body in service.bodies(PREPARE)] == service.bodies(PREPARE)
    paid, unpaid = [headers for headers in service.headers if headers["path"] == EXECUTE]
    assert paid.get("Relay-Quote") == (quote["id"] if quote else None)
    assert (paid["Relay-Sponsor"], paid["Relay-Sponsor-Voucher"]) == ("my-dapp", voucher)
    assert not {"Relay-Sponsor", "Relay-Sponsor-Voucher"} & set(unpaid)


def test_calls_of_a_channel_are_prepared_one_after_the_other(service: FakeService, relay: Relay) -> None:
    service.replies[EXECUTE] = [problem(409, "relay-nonce-taken")]

    with ThreadPoolExecutor() as pool:
        list(pool.map(lambda _: relay.send(PROFILE, CALL), range(3)))

    assert _nonces(service) == ["4", "5", "6", "7"]


def test_a_call_that_would_be_refused_is_not_signed(service: FakeService, relay: Relay) -> None:
    service.replies[PREPARE] = [(200, {**service.usual(PREPARE), "refusals": [BUSY[1]]})]

    with pytest.raises(RelayProblem, match="busy"):
        relay.send(PROFILE, CALL)

    assert service.bodies(EXECUTE) == []


def test_nothing_is_signed_for_another_key_manager_than_the_node_names(service: FakeService) -> None:
    relay = connect(service.url, Account.create(), node=service.url + "/")
    prepared = service.usual(PREPARE)
    service.replies["/"] = [(200, {"result": "0x" + PROFILE[2:].rjust(64, "0")}), (200, {"result": "0x2a"})]
    service.replies[PREPARE] = [(200, prepared)]

    with pytest.raises(ValueError, match="another key manager or chain"):
        relay.send(PROFILE, CALL)

    assert service.bodies(EXECUTE) == []


def test_a_sign_in_is_tried_again_with_a_nonce_of_its_own(service: FakeService, relay: Relay) -> None:
    service.replies["/api/auth/verify"] = [BUSY]

    relay.sign_in(PROFILE)

    first, second = service.bodies("/api/auth/verify")
    assert first["nonce"] != second["nonce"]
    assert first["signature"] != second["signature"]


def test_the_message_of_another_service_is_not_signed(service: FakeService) -> None:
    relay = connect(service.url, Account.create(), domain="elsewhere.example")

    with pytest.raises(ValueError, match="not for elsewhere"):
        relay.sign_in(PROFILE)


def test_concurrent_requests_renew_an_expired_token_once(service: FakeService, relay: Relay) -> None:
    relay.sign_in(PROFILE)
    service.replies[DASHBOARD] = [problem(401, "access-token-expired")] * 2

    with ThreadPoolExecutor() as pool:
        list(pool.map(lambda _: relay.dashboard(PROFILE), range(2)))

    assert len(service.bodies("/api/auth/refresh")) == len(service.bodies("/api/auth/verify")) == 1


def test_after_the_end_of_a_session_the_profile_signs_in_again(service: FakeService, relay: Relay) -> None:
    relay.sign_in(PROFILE)
    service.replies[DASHBOARD] = service.replies["/api/auth/refresh"] = [problem(401, "session-ended")]
    service.replies[DASHBOARD] = list(service.replies[DASHBOARD])

    relay.dashboard(PROFILE)

    assert len(service.bodies("/api/auth/verify")) == 2


def test_a_sign_out_while_the_session_ends_raises_nothing(
    service: FakeService, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens: dict[str, str] = {}
    relay = connect(service.url, Account.create(), tokens=tokens)
    relay.sign_in(PROFILE)
    result = service.answer

    def signed_out_meanwhile(path: str, body: dict[str, Any]) -> Reply:
        if path == "/api/auth/refresh":
            tokens.clear()
        return result(path, body)

    monkeypatch.setattr(service, "answer", signed_out_meanwhile)
    service.replies[DASHBOARD] = [problem(401, "session-ended")]
    service.replies["/api/auth/refresh"] = [problem(401, "session-ended")]

    relay.dashboard(PROFILE)

    assert len(service.bodies("/api/auth/verify")) == 2


def test_the_time_of_a_quota_request_is_read_after_signing_in(service: FakeService, relay: Relay) -> None:
    service.retry_after = "1"
    service.replies["/api/auth/verify"] = [BUSY]
    began_at = int(time.time())

    relay.quota(PROFILE)

    (body,) = service.bodies("/api/relay/quota")
    assert body["timestamp"] > began_at


def test_the_quota_request_and_its_retry_are_signed_with_the_current_time(
    service: FakeService, relay: Relay
) -> None:
    service.retry_after = "1"
    service.replies["/api/relay/quota"] = [BUSY]

    assert relay.quota(PROFILE)["quota"] == 7

    first, second = service.bodies("/api/relay/quota")
    assert first["timestamp"] < second["timestamp"]
    assert first["signature"] != second["signature"]


def test_histories_are_read_page_by_page_from_this_service_alone(service: FakeService, relay: Relay) -> None:
    path = "/api/user/transactions"
    following = f"https://elsewhere.example{path}?cursor=x%3D"
    service.replies[path] = [(200, {"results": [1, 2], "next": following})]
    service.replies[path + "?cursor=x%3D"] = [(200, {"results": [3], "next": None})]

    rows: list[Any] = list(relay.transactions(PROFILE))

    assert rows == [1, 2, 3]


def test_tokens_that_are_kept_outlive_the_program_and_signing_out_forgets_them(service: FakeService) -> None:
    tokens: dict[str, str] = {}
    connect(service.url, Account.create(), tokens=tokens).sign_in(PROFILE)

    later = connect(service.url, Account.create(), tokens=tokens)
    later.dashboard(PROFILE.lower())
    later.sign_out(PROFILE)

    assert len(service.bodies("/api/auth/verify")) == 1
    assert tokens == {}


def test_a_purchase_is_repeated_with_its_key_and_every_other_has_a_key_of_its_own(
    service: FakeService, relay: Relay
) -> None:
    paid = (200, {"status": "paid", "credits": 10_000})
    confirm = problem(402, "authentication-required", clientSecret="pi_1_secret_2")
    service.replies[BUY] = [BUSY, confirm, paid, paid, paid]

    with pytest.raises(RelayProblem, match="authentication-required") as refusal:
        relay.purchase_credits(PROFILE, {"amount": 2550, "currency": "eur"}, "mine")
    for key in ("mine", None, None):
        bought = relay.purchase_credits(PROFILE, {"amount": 2550, "currency": "eur"}, key)
        assert (bought["status"], bought["credits"]) == ("paid", 10_000)

    assert refusal.value.members == {"clientSecret": "pi_1_secret_2"}
    sent = [(method, key) for path, method, key in service.keys if path == BUY]
    assert sent[:3] == [("POST", "mine")] * 3
    assert len(set(sent)) == 3
    assert service.bodies(BUY) == [{"amount": 2550, "currency": "eur"}] * 5


def test_a_copy_is_requested_with_the_data_of_the_first_deployment_if_they_are_given(
    service: FakeService, relay: Relay
) -> None:
    path = "/api/relay/copyProfile"
    made = {"universalProfileAddress": PROFILE, "chainId": 8453, "transactionHash": None}
    first: FirstDeploymentRequest = {"salt": "0x" + "12" * 32, "postDeploymentCallData": "0x00"}
    service.replies[path] = [(200, made), (200, made)]

    assert relay.copy_profile(PROFILE, 8453) == made
    relay.copy_profile(PROFILE, 8453, first)

    assert service.bodies(path) == [{"chainId": 8453}, {"chainId": 8453, "firstDeployment": first}]


def test_a_removal_that_the_user_has_seen_is_signed_and_sent_with_the_copy(
    service: FakeService, relay: Relay
) -> None:
    path = "/api/relay/copyProfile"
    made = {"universalProfileAddress": PROFILE, "chainId": 8453, "transactionHash": None}
    removal: list[Controller] = [
        {"address": random_address(), "permissions": "0x" + "00" * 32},
        {"address": random_address(), "permissions": f"0x{0x800:064x}"},
    ]
    key_manager = random_address()
    needed = problem(409, "copy-needs-removal", removal=removal, keyManagerAddress=key_manager)
    service.replies[path] = [needed, needed, (200, made)]
    with pytest.raises(RelayProblem, match="copy-needs-removal") as refusal:
        relay.copy_profile(PROFILE, 8453)

    assert relay.copy_profile(PROFILE, 8453, removal=refusal.value.members["removal"]) == made

    words = (
        (permissions_key(removal[0]["address"]), b""),
        (permissions_key(removal[1]["address"]), (0x800).to_bytes(32, "big")),
    )
    digest = relay_digest(
        chain_id=8453, key_manager=key_manager, relay_nonce=0, validity=0, payload=payload_of(words)
    )
    signature = service.bodies(path)[-1]["removalSignature"]
    assert recover_address(digest, bytes.fromhex(signature[2:])) == relay.signer.address
    assert service.bodies(path)[:2] == [{"chainId": 8453}] * 2


def test_packs_and_top_up_are_read_and_top_up_is_set(service: FakeService, relay: Relay) -> None:
    terms: TopUpTermsRequest = {
        "enabled": True,
        "threshold": 500,
        "pack": "usd-10",
        "monthlyLimit": 3000,
        "consent": "I agree.",
    }
    service.replies["/api/payments/packs"] = [(200, {"packs": [{"pack": "usd-10"}], "currencies": []})]
    service.replies[TOP_UP] = [(200, {"status": "off"}), (200, {"status": "on"})]

    assert relay.packs(PROFILE)["packs"][0]["pack"] == "usd-10"
    assert relay.top_up(PROFILE)["status"] == "off"
    assert relay.set_top_up(PROFILE, terms)["status"] == "on"

    assert service.bodies(TOP_UP) == [{}, terms]
    assert [method for path, method, _ in service.keys if path == TOP_UP] == ["GET", "PUT"]
