"""
Attacks on a chain besides home that are no removed controller's: over HTTP, by every way to have a call paid there.

Whatever is tried, nothing is stored or held, and home goes on.
"""

import secrets
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings as configured
from django.utils import timezone
from pytest_django import Settings

from credits.models import EntrySource
from credits.queries import balance_of
from credits.services import entries
from devstack.services.stack import Services
from devstack.world.permissions import ALL_PERMISSIONS
from devstack.world.profiles import Profile
from gateway.chain.client import JsonRpcChainClient, set_chain_client
from gateway.chain.config import on_chain
from gateway.chain.lsp25 import RelayCall
from gateway.chain.nodes import NodeLimits
from relay.models import CreditPrice, RelayTransaction
from relay.queries.prices import watch
from sponsors.models import Sponsor
from sponsors.services import holdings, policies
from tests.database import rewrite
from tests.factories import random_address
from tests.fakes.profiles import address_of, random_key
from tests.relay.api.conftest import ApiResponse, Wallet, execute_body
from tests.relay.api.test_execute import EXECUTE, assert_problem
from tests.relay.api.test_lsp15 import lsp15_body
from tests.relay.api.test_quota import quota_body
from tests.relay.api.test_vouchers import voucher_text
from tests.relay.services.test_vouchers import Issuer
from tests.relay.signing import sign_digest
from tests.relay.sponsoring import account_of, all_rows
from tests.relay.tokens import deploy_fungible, follow
from tests.relay.two_chains import ForeignChain
from tests.relay.workers import broadcast_all, track
from tests.sponsors.sponsorships import make_policy, make_sponsor
from users.models import User

pytestmark = pytest.mark.django_db
PREPARE, COPY = "/api/relay/prepare", "/api/relay/copyProfile"
Send = Callable[[], ApiResponse]


def _body(chain: ForeignChain, call: RelayCall) -> dict[str, Any]:
    return {**execute_body(call), "chainId": chain.id}


def _path(chain: ForeignChain, name: str = "execute") -> str:
    return f"/api/lsp15/{chain.id}/{name}"


@pytest.fixture
def issuer(services: Services, foreign: ForeignChain) -> Issuer:
    """A sponsor who pays on the chain for calls with a voucher."""
    made = Issuer(services, chain_id=foreign.id)
    made.chain_id = foreign.id
    return made


@pytest.fixture
def ways(
    wallet: Wallet, anonymous: Wallet, user: User, profile: Profile, foreign: ForeignChain, issuer: Issuer
) -> dict[str, Send]:
    """Every way to have a call of the profile paid on the chain; a quote was given before."""
    sponsor = make_sponsor()
    make_policy(sponsor, chain_id=foreign.id)
    first, second, third, *others = (foreign.sign(profile, channel=number) for number in range(1, 7))
    payload = {"transaction": {"abi": "0x" + first.payload.hex()}, "chainId": foreign.id}
    quoted = wallet.post(PREPARE, payload).body
    prepared = quoted["transaction"]
    of_quote = foreign.sign(
        profile,
        payload=bytes.fromhex(prepared["abi"][2:]),
        relay_nonce=int(prepared["nonce"]),
        validity=int(prepared["validityTimestamps"]),
    )
    vouchers = [voucher_text(issuer.voucher(profile.profile_address)) for _ in range(2)]
    headers = {"Relay-Sponsor": issuer.sponsor.slug, "Relay-Sponsor-Voucher": vouchers[0]}
    members = {"sponsor": issuer.sponsor.slug, "sponsorVoucher": vouchers[1]}
    plain, sponsored, vouched = (lsp15_body(profile, call) for call in others)
    return {
        "own credits": lambda: wallet.post(EXECUTE, _body(foreign, first)),
        "a quote": lambda: wallet.post(
            EXECUTE, _body(foreign, of_quote), **{"Relay-Quote": quoted["quote"]["id"]}
        ),
        "a sponsor": lambda: wallet.post(EXECUTE, _body(foreign, second), **{"Relay-Sponsor": sponsor.slug}),
        "a voucher": lambda: wallet.post(EXECUTE, _body(foreign, third), **headers),
        "no token": lambda: anonymous.post(_path(foreign), plain),
        "no token, a sponsor": lambda: anonymous.post(_path(foreign), sponsored | {"sponsor": sponsor.slug}),
        "no token, a voucher": lambda: anonymous.post(_path(foreign), vouched | members),
    }


def test_every_way_has_a_call_paid_when_nothing_is_wrong(ways: dict[str, Send]) -> None:
    """Otherwise the refusals below would show nothing."""
    for name, send in ways.items():
        response = send()
        assert response.status == 200, (name, response.body)
    assert RelayTransaction.objects.exclude(chain_id=configured.CHAIN_ID).count() == len(ways)


def test_a_stale_price_stops_every_way_and_no_call_at_home(
    ways: dict[str, Send],
    wallet: Wallet,
    foreign: ForeignChain,
    profile: Profile,
    new_call: Callable[..., RelayCall],
) -> None:
    rewrite(CreditPrice.objects.filter(chain_id=foreign.id), valid_from=timezone.now() - timedelta(days=31))
    watch.forget()
    before = all_rows()
    ways["a copy"] = lambda: wallet.post(COPY, {"chainId": foreign.id})
    for name, send in ways.items():
        response = send()
        assert (response.status, response.body.get("code")) == (503, "chain-price-outdated"), name
        assert response.headers["Retry-After"] == "300"
    abi = "0x" + new_call().payload.hex()
    prepared = wallet.post(PREPARE, {"transaction": {"abi": abi}, "chainId": foreign.id}).body
    assert ([one["code"] for one in prepared["refusals"]], prepared["quote"]) == (
        ["chain-price-outdated"],
        None,
    )
    assert all_rows() == before
    assert wallet.post(EXECUTE, execute_body(new_call())).status == 200


def test_nodes_that_deny_the_chains_id_stop_every_way_and_no_call_at_home(
    services: Services,
    ways: dict[str, Send],
    wallet: Wallet,
    anonymous: Wallet,
    foreign: ForeignChain,
    profile: Profile,
    new_call: Callable[..., RelayCall],
) -> None:
    # The URLs of the chain lead to home's node, which knows the profile, the key manager and trusts all of them.
    swapped = JsonRpcChainClient([services.rpc.url], timeout_seconds=30, limits=NodeLimits(foreign.id, 600))
    set_chain_client(swapped, chain_id=foreign.id)
    before = all_rows()
    ways["prepare"] = lambda: wallet.post(
        PREPARE, {"transaction": {"abi": "0x" + new_call().payload.hex()}, "chainId": foreign.id}
    )
    ways["the quota"] = lambda: anonymous.post(_path(foreign, "quota"), quota_body(profile))
    # Signed for the chain that responds, the call is refused too.
    ways["a call of home"] = lambda: wallet.post(EXECUTE, _body(foreign, new_call()))
    for name, send in ways.items():
        response = send()
        assert (response.status, response.body.get("code")) == (503, "chain-unavailable"), (
            name,
            response.body,
        )
    assert all_rows() == before
    assert wallet.post(EXECUTE, execute_body(new_call())).status == 200


def test_credits_that_were_given_pay_nowhere_but_at_home(
    ways: dict[str, Send],
    wallet: Wallet,
    user: User,
    foreign: ForeignChain,
    profile: Profile,
    settings: Settings,
    new_call: Callable[..., RelayCall],
) -> None:
    its = settings.CHAINS[foreign.id]
    settings.CHAINS = {foreign.id: replace(its, spends_given_credits=False)}
    before = all_rows()
    for name in ("own credits", "no token"):
        members = assert_problem(ways[name](), 402, "paid-credits-needed")
        assert (members["available"], members["chainId"]) == (0, foreign.id)
    assert all_rows() == before
    assert wallet.post(EXECUTE, execute_body(new_call())).status == 200

    entries.grant(user=user, credits=9_000, source=EntrySource.CREDIT_PURCHASE, key=secrets.token_hex(8))
    assert ways["own credits"]().status == 200
    assert RelayTransaction.objects.filter(chain_id=foreign.id).count() == 1


def test_a_call_that_was_executed_is_returned_and_not_executed_again(
    ways: dict[str, Send], wallet: Wallet, foreign: ForeignChain, profile: Profile, user: User
) -> None:
    call = foreign.sign(profile)
    first = wallet.post(EXECUTE, _body(foreign, call))
    with on_chain(foreign.id):
        broadcast_all()
        foreign.mine(2)
        assert track() == 1
    balance, sent = balance_of(user), len(foreign.sent)
    assert wallet.post(EXECUTE, _body(foreign, call)).body == first.body
    with on_chain(foreign.id):
        broadcast_all()
    assert (RelayTransaction.objects.count(), balance_of(user), len(foreign.sent)) == (1, balance, sent)
    # At home the same call is that of nobody.
    assert_problem(wallet.post(EXECUTE, execute_body(call)), 403, "signer-not-a-controller")


class TestVouchers:
    """A voucher is signed for one chain, and no voucher stands in for the consent of home."""

    def test_a_voucher_of_one_chain_pays_on_no_other(
        self,
        services: Services,
        wallet: Wallet,
        anonymous: Wallet,
        user: User,
        profile: Profile,
        foreign: ForeignChain,
        issuer: Issuer,
        new_call: Callable[..., RelayCall],
    ) -> None:
        at_home = Issuer(services)
        for one, chain_id in ((issuer, configured.CHAIN_ID), (at_home, foreign.id)):
            # Signed for the other chain than the policy's.
            one.chain_id = chain_id
        before = all_rows()
        for one, body in (
            (issuer, _body(foreign, foreign.sign(profile))),
            (at_home, execute_body(new_call())),
        ):
            text = voucher_text(one.voucher(profile.profile_address))
            headers = {"Relay-Sponsor": one.sponsor.slug, "Relay-Sponsor-Voucher": text}
            refused = wallet.post(EXECUTE, body, **headers)
            assert assert_problem(refused, 403, "sponsor-voucher")["reason"] == "signer"
        # Well signed for the call's chain, a policy of home pays nowhere else.
        at_home.chain_id = foreign.id
        text = voucher_text(at_home.voucher(profile.profile_address))
        body = lsp15_body(profile, foreign.sign(profile)) | {
            "sponsor": at_home.sponsor.slug,
            "sponsorVoucher": text,
        }
        assert_problem(anonymous.post(_path(foreign), body), 403, "sponsor-chain")
        assert all_rows() == before

    @pytest.mark.parametrize("payer", ["own", "a sponsor", "the default sponsor", "a voucher"])
    def test_no_payer_pays_for_a_controller_that_home_removed(
        self,
        anonymous: Wallet,
        profile: Profile,
        open_account: Callable[..., User],
        foreign: ForeignChain,
        issuer: Issuer,
        payer: str,
    ) -> None:
        key, members = random_key(), {}
        foreign.copy(profile, **{address_of(key): int(ALL_PERMISSIONS)})
        open_account(profile, 1 if payer == "the default sponsor" else 10_000)
        sponsor: Sponsor = make_sponsor()
        make_policy(sponsor, chain_id=foreign.id)
        if payer == "a sponsor":
            members = {"sponsor": sponsor.slug}
        elif payer == "the default sponsor":
            policies.make_default(sponsor, is_default=True)
        elif payer == "a voucher":
            text = voucher_text(issuer.voucher(profile.profile_address))
            members = {"sponsor": issuer.sponsor.slug, "sponsorVoucher": text}
        before = all_rows()
        body = lsp15_body(profile, foreign.sign(profile, private_key=key, relay_nonce=0)) | members
        assert_problem(anonymous.post(_path(foreign), body), 403, "home-permission-missing")
        assert all_rows() == before
        # A controller that home has kept is paid for.
        assert (
            anonymous.post(_path(foreign), lsp15_body(profile, foreign.sign(profile)) | members).status == 200
        )


def test_a_profile_whose_key_managers_differ_is_called_by_the_one_of_the_chain(
    wallet: Wallet, anonymous: Wallet, user: User, profile: Profile, foreign: ForeignChain
) -> None:
    there = random_address()
    held = {one.address: int(one.permissions) for one in profile.controllers}
    foreign.create_copy(profile.profile_address, there, held)
    before = all_rows()
    of_home = foreign.sign(profile)
    assert_problem(wallet.post(EXECUTE, _body(foreign, of_home)), 403, "key-manager-not-owner")
    moved = {**_body(foreign, of_home), "keyManagerAddress": there}
    assert_problem(wallet.post(EXECUTE, moved), 403, "signer-not-a-controller")
    # Without a token, the key manager is that of the chain, for which nothing is signed.
    assert_problem(
        anonymous.post(_path(foreign), lsp15_body(profile, of_home)), 403, "home-permission-missing"
    )
    assert all_rows() == before

    digest = replace(of_home, key_manager=there).digest(foreign.id)
    signed = replace(
        of_home, key_manager=there, signature=sign_digest(profile.controller.private_key, digest)
    )
    assert anonymous.post(_path(foreign), lsp15_body(profile, signed)).status == 200
    assert RelayTransaction.objects.get().key_manager_address == there


@pytest.mark.parametrize("rule", ["target", "token", "follow"])
def test_what_a_sponsors_policy_names_is_looked_for_on_its_chain_alone(
    services: Services,
    anonymous: Wallet,
    profile: Profile,
    open_account: Callable[..., User],
    foreign: ForeignChain,
    rule: str,
) -> None:
    """Everything is as the policy wants it at home, at the same addresses; the policy is of the other chain."""
    holdings._recent.clear()
    open_account(profile, 1)
    own, sponsor, other = profile.profile_address, make_sponsor(), random_address()
    terms: dict[str, Any] = {"targets": [{"contract": other, "functions": []}]}
    if rule == "token":
        terms = {"profiles": "holding", "least_balance": 1}
        terms["counterpart"] = deploy_fungible(services, holder=own, amount=5)
    elif rule == "follow":
        follow(services, follower=own, followed=other)
        terms = {"profiles": "follower", "counterpart": other}
    make_policy(sponsor, chain_id=foreign.id, **terms)
    body = lsp15_body(profile, foreign.sign(profile)) | {"sponsor": sponsor.slug}
    before = all_rows()
    code = "sponsor-target" if rule == "target" else "sponsor-holding"
    assert_problem(anonymous.post(_path(foreign), body), 403, code)
    assert all_rows() == before

    make_policy(sponsor, position=1, **terms)
    assert_problem(anonymous.post(_path(foreign), body), 403, code)
    assert account_of(sponsor).open_holds == 0
