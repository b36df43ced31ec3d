"""Newcomers through the packages, on a real chain: a profile and its first call, both paid by a sponsor."""

import json
import re
import secrets
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from django.utils import timezone
from eth_account import Account
from pytest_django import Settings
from pytest_django.live_server_helper import LiveServer

from credit_relay_client import RelayProblem, create_profile, requested_profile
from devstack.services.stack import Services
from devstack.toolchain import TYPESCRIPT_CLIENT, install_node_packages
from gateway.chain.client import get_chain_client
from gateway.chain.lsp3 import PROFILE_KEY
from gateway.chain.signing import get_signer
from relay.models import ProfileCreation, RelayTransaction
from relay.services.fleet import relayers
from sponsors.models import Member, ProfileRule, Purpose, Sponsor, SponsoredCall
from sponsors.services import keys
from tests.clients.running import NODE, output_of, result_of
from tests.relay.creating import all_rows
from tests.sponsors.api.callers import member_of
from tests.sponsors.sponsorships import make_policy, make_sponsor
from tests.users.trusted import trust_code

EXAMPLE = TYPESCRIPT_CLIENT / "examples/newcomer.ts"
_CREDITS = 100_000


@pytest.fixture
def sponsor(services: Services, transactional_db: None) -> Sponsor:
    """A sponsor that pays for two new profiles a day, and for the first call of each."""
    code = services.world.implementations
    trust_code(profile=code.universal_profile, key_manager=code.key_manager)
    services.world.fund(10**18, *get_signer().addresses())
    relayers.sync(now=timezone.now())
    sponsor = make_sponsor(_CREDITS)
    make_policy(sponsor, purpose=Purpose.PROFILES, window_seconds=86_400, window_calls=2)
    make_policy(sponsor, profiles=ProfileRule.NEW, new_since=timezone.now(), user_calls=1)
    return sponsor


@pytest.fixture
def api_key(sponsor: Sponsor) -> str:
    """The key of the sponsor's server."""
    actor = member_of(sponsor, Member.Role.MANAGER)
    return keys.create(
        sponsor=sponsor, name="server", scopes=["create"], networks=[], actor=actor, now=timezone.now()
    ).text


def test_the_example_creates_a_profile_whose_first_call_the_sponsor_pays(
    services: Services,
    live_server: LiveServer,
    sponsor: Sponsor,
    api_key: str,
    tmp_path: Path,
    settings: Settings,
) -> None:
    install_node_packages(TYPESCRIPT_CLIENT, "what the TypeScript client is made with")
    settings.AUTH_DOMAIN = live_server.url.removeprefix("http://")
    stack = {"base_url": live_server.url, "sponsor": {"name": sponsor.slug, "create_key": api_key}}
    (tmp_path / "stack.json").write_text(json.dumps(stack))

    output = output_of([*NODE, EXAMPLE, tmp_path / "stack.json"], services)

    row = ProfileCreation.objects.get()
    assert output.splitlines() == [
        f"Success, the profile is {row.profile_address}",
        f"Success, 0 credits used, paid by {sponsor.slug}",
    ]
    deployment, call = RelayTransaction.objects.order_by("pk")
    assert (deployment.deploys_profile, call.deploys_profile) == (True, False)
    assert SponsoredCall.objects.filter(version__policy__sponsor=sponsor).count() == 2
    sponsor.credit_account.refresh_from_db()
    assert sponsor.credit_account.balance == _CREDITS - deployment.real_cost - call.real_cost


def test_the_python_package_creates_one_profile_for_each_key(
    services: Services, live_server: LiveServer, sponsor: Sponsor, api_key: str
) -> None:
    controllers = sorted((Account.create().address, Account.create().address), key=str.lower)
    uri = bytes.fromhex("00006f357c6a0020") + secrets.token_bytes(32) + b"ipfs://card"
    create = partial(create_profile, live_server.url, api_key, controllers, metadata=uri, key="user-4711")

    profile = result_of(create, services)

    row = ProfileCreation.objects.get()
    deployment = RelayTransaction.objects.get()
    assert profile["status"] == "Success"
    assert (profile["universalProfileAddress"], profile["keyManagerAddress"], profile["transactionHash"]) == (
        row.profile_address,
        row.key_manager_address,
        deployment.transaction_hash,
    )
    assert {one["address"] for one in profile["controllers"]} > set(controllers)
    assert get_chain_client().read_data(profile=row.profile_address, key=PROFILE_KEY) == uri
    before = all_rows()
    assert create() == profile
    assert requested_profile(live_server.url, api_key, row.profile_address.lower()) == profile
    assert all_rows() == before


def test_the_policy_of_the_sponsor_ends_with_its_code(
    services: Services, live_server: LiveServer, sponsor: Sponsor, api_key: str
) -> None:
    def create() -> str:
        controllers = [Account.create().address]
        profile = create_profile(live_server.url, api_key, controllers, wait_seconds=0)
        return profile["status"]

    assert [create(), create()] == ["Pending", "Pending"]
    before = all_rows()
    with pytest.raises(RelayProblem) as refusal:
        create()
    assert (refusal.value.code, refusal.value.members["limit"]) == ("sponsor-limit-window-calls", 2)
    assert all_rows() == before
    refused = _refused(lambda: create_profile(live_server.url, "sponsor_x", [Account.create().address]))
    assert refused.code == "sponsor-key"
    assert all_rows() == before


def _refused(call: Callable[[], object]) -> RelayProblem:
    with pytest.raises(RelayProblem) as refusal:
        call()
    return refusal.value


def test_the_example_is_thirty_lines() -> None:
    code = [line for line in re.split(r"\n \*/\n", EXAMPLE.read_text())[1].splitlines() if line.strip()]
    assert len(code) <= 30
