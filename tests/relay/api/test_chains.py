"""Calls, quotas, statuses and histories of several chains."""

import random
from collections.abc import Callable
from typing import Any

import pytest
from django.conf import settings as django_settings
from django.test import Client
from pytest_django import Settings

from credits.models import CreditHold
from credits.queries import balance_of
from devstack.world.profiles import Profile
from gateway.chain.config import on_chain
from gateway.chain.lsp25 import RelayCall
from gateway.staff import pauses
from relay import checks
from relay.models import Attempt, CreditPrice, Quote, RelayTransaction
from tests.factories import UserFactory
from tests.relay.api.conftest import Wallet, execute_body
from tests.relay.api.test_execute import EXECUTE, assert_problem
from tests.relay.api.test_lsp15 import lsp15_body
from tests.relay.api.test_quota import quota_body
from tests.relay.rows import everything
from tests.relay.two_chains import ForeignChain, settings_of
from tests.relay.workers import broadcast_all, track
from users.models import User

pytestmark = pytest.mark.django_db
PREPARE, STATUS = "/api/relay/prepare", "/api/relay/transactionStatus"


def _body(chain: ForeignChain, call: RelayCall) -> dict[str, Any]:
    return {**execute_body(call), "chainId": chain.id}


def test_a_call_is_executed_on_the_chain_that_it_names(
    wallet: Wallet, profile: Profile, foreign: ForeignChain, user: User
) -> None:
    response = wallet.post(EXECUTE, _body(foreign, foreign.sign(profile)))
    assert response.status == 200
    with on_chain(foreign.id):
        broadcast_all()
        foreign.mine(2)
        assert track() == 1
    row = RelayTransaction.objects.get()
    assert (row.status, row.chain_id, row.user_id) == ("Success", foreign.id, user.pk)
    assert balance_of(user).balance == 10_000 - row.real_cost
    status = wallet.post(STATUS, response.body)
    assert (status.body["status"], status.body["chainId"]) == ("Success", foreign.id)


def test_the_same_nonce_is_free_on_another_chain(
    wallet: Wallet, profile: Profile, foreign: ForeignChain, new_call: Callable[..., RelayCall]
) -> None:
    home, elsewhere = new_call(), foreign.sign(profile)
    responses = [wallet.post(EXECUTE, execute_body(home)), wallet.post(EXECUTE, _body(foreign, elsewhere))]
    assert [response.status for response in responses] == [200, 200]
    assert set(RelayTransaction.objects.values_list("chain_id", flat=True)) == {
        django_settings.CHAIN_ID,
        foreign.id,
    }


@pytest.mark.parametrize("path", [EXECUTE, PREPARE])
def test_an_unknown_chain_is_refused_with_the_names_of_the_chains(
    wallet: Wallet, profile: Profile, foreign: ForeignChain, path: str
) -> None:
    body = (
        _body(foreign, foreign.sign(profile)) if path == EXECUTE else {"transaction": {"abi": "0x7f23690c"}}
    )
    before = everything()
    response = wallet.post(path, {**body, "chainId": foreign.id + 1})
    assert_problem(response, 404, "chain-unknown")
    assert response.body["detail"].endswith(f"{django_settings.CHAIN_ID}, {foreign.id}.")
    assert everything() == before


def test_a_chain_that_takes_no_calls_refuses_them_and_home_does_not(
    wallet: Wallet,
    profile: Profile,
    foreign: ForeignChain,
    settings: Settings,
    new_call: Callable[..., RelayCall],
) -> None:
    settings.CHAINS = {foreign.id: settings_of(foreign.id, takes_calls=False)}
    response = wallet.post(EXECUTE, _body(foreign, foreign.sign(profile)))
    assert_problem(response, 503, "chain-takes-no-calls")
    assert response.headers["Retry-After"] == "300"
    assert not CreditHold.objects.exists()
    assert wallet.post(EXECUTE, execute_body(new_call())).status == 200


def test_a_call_is_prepared_and_quoted_for_the_chain_that_it_names(
    wallet: Wallet, profile: Profile, foreign: ForeignChain
) -> None:
    body = {"transaction": {"abi": "0x" + foreign.sign(profile).payload.hex()}, "chainId": foreign.id}
    prepared = wallet.post(PREPARE, body).body
    assert (prepared["chainId"], prepared["refusals"]) == (foreign.id, [])
    assert Quote.objects.get().chain_id == foreign.id
    call = foreign.sign(
        profile,
        payload=bytes.fromhex(prepared["transaction"]["abi"][2:]),
        relay_nonce=int(prepared["transaction"]["nonce"]),
        validity=int(prepared["transaction"]["validityTimestamps"]),
    )
    response = wallet.post(EXECUTE, _body(foreign, call), **{"Relay-Quote": prepared["quote"]["id"]})
    assert response.status == 200
    assert Attempt.objects.get().chain_id == foreign.id


def test_a_history_names_the_chain_and_is_filtered_by_it(
    wallet: Wallet, profile: Profile, foreign: ForeignChain, new_call: Callable[..., RelayCall]
) -> None:
    wallet.post(EXECUTE, execute_body(new_call()))
    wallet.post(EXECUTE, _body(foreign, foreign.sign(profile)))
    path = "/api/user/transactions"
    both = wallet.send("get", path).body["results"]
    assert [row["chainId"] for row in both] == [foreign.id, django_settings.CHAIN_ID]
    assert wallet.send("get", f"{path}?chainId={foreign.id}").body["results"] == both[:1]
    assert_problem(wallet.send("get", f"{path}?chainId=base"), 400, "invalid-request")


def test_the_service_lists_its_chains_with_their_states(foreign: ForeignChain) -> None:
    def listed() -> dict[str, Any]:
        body: dict[str, Any] = Client().get("/api/service").json()
        return body

    body = listed()
    assert [chain["chainId"] for chain in body["chains"]] == [django_settings.CHAIN_ID, foreign.id]
    assert body["chains"][1] == {
        "chainId": foreign.id,
        "name": f"Chain {foreign.id}",
        "currency": "ETH",
        "creditWei": str(10**12),
        "creditWeiFrom": int(CreditPrice.objects.get(chain_id=foreign.id).valid_from.timestamp()),
        "explorerUrl": "https://explorer.example",
        "relayerUrl": f"http://testserver/api/lsp15/{foreign.id}",
        "state": "accepting",
    }
    assert {name: body["chains"][0][name] for name in ("chainId", "relayerUrl", "state")} == {
        "chainId": body["chainId"],
        "relayerUrl": body["relayerUrl"],
        "state": "accepting",
    }
    with foreign.away():
        assert [chain["state"] for chain in listed()["chains"]] == ["accepting", "away"]
    pauses.switch("relay", is_paused=True, actor=UserFactory.create(is_staff=True), reason="Tests")
    assert [chain["state"] for chain in listed()["chains"]] == ["paused", "paused"]


def test_a_wallet_without_a_token_uses_the_chains_own_path(
    anonymous: Wallet, profile: Profile, foreign: ForeignChain, user: User
) -> None:
    body = lsp15_body(profile, foreign.sign(profile))
    assert anonymous.post(f"/api/lsp15/{foreign.id}/execute", body).status == 200
    assert Attempt.objects.get().chain_id == foreign.id


@pytest.mark.parametrize("text", ["0", "base", "9" * 40])
def test_a_path_of_an_unknown_chain_names_the_chains(
    anonymous: Wallet, profile: Profile, foreign: ForeignChain, user: User, text: str
) -> None:
    before = everything()
    for path, body in (
        ("execute", lsp15_body(profile, foreign.sign(profile))),
        ("quota", quota_body(profile)),
    ):
        response = anonymous.post(f"/api/lsp15/{text}/{path}", body)
        assert_problem(response, 404, "chain-unknown")
        assert response.body["detail"].endswith(f"{django_settings.CHAIN_ID}, {foreign.id}.")
    assert everything() == before


def test_the_quota_of_a_chain_is_the_gas_at_its_current_fee(
    anonymous: Wallet, profile: Profile, foreign: ForeignChain, user: User
) -> None:
    foreign.base_fee_wei = random.randrange(10**9, 10**10)
    body = quota_body(profile)
    response = anonymous.post(f"/api/lsp15/{foreign.id}/quota", body)
    tip_wei = 10**8
    assert response.body == {"quota": 10_000 * 10**12 // (foreign.base_fee_wei + tip_wei), "unit": "gas"}
    assert anonymous.post("/api/lsp15/quota", body).body["quota"] == 10_000 * 10**12 // 10**9


def test_a_chain_with_calls_in_progress_is_missed_by_check_when_it_is_removed(
    wallet: Wallet, profile: Profile, foreign: ForeignChain, settings: Settings
) -> None:
    assert wallet.post(EXECUTE, _body(foreign, foreign.sign(profile))).status == 200
    assert checks.chains_with_open_calls() == []
    further, settings.CHAINS = settings.CHAINS, {}
    [error] = checks.chains_with_open_calls()
    assert (error.id, error.msg) == (
        "relay.E007",
        f"Chain {foreign.id} is not in CHAINS and has calls in progress: 1.",
    )
    settings.CHAINS = further
    with on_chain(foreign.id):
        broadcast_all()
        foreign.mine(2)
        assert track() == 1
    settings.CHAINS = {}
    assert checks.chains_with_open_calls() == []
