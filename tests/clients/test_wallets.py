"""The example wallets, run as a reader runs them, against the service on a real chain."""

import json
import secrets
import sys
from pathlib import Path

import pytest
from django.conf import settings
from django.utils import timezone
from pytest_django import Settings
from pytest_django.live_server_helper import LiveServer

from credits.models import EntrySource
from credits.queries import balance_of
from credits.services import entries
from devstack.services.stack import Services
from devstack.toolchain import TYPESCRIPT_CLIENT, install_node_packages
from devstack.world.profiles import Profile, ProfilePlan
from gateway.chain.signing import get_signer
from relay.models import RelayTransaction
from relay.services.fleet import relayers
from sponsors.models import ProfileRule, SponsoredCall, VoucherSigner
from tests.clients.running import NODE, PYTHON_CLIENT, output_of
from tests.clients.voucher_server import running_server
from tests.factories import UserFactory
from tests.fakes.profiles import address_of, random_key
from tests.sponsors.sponsorships import make_policy, make_sponsor
from tests.users.trusted import trust_code
from users.models import User

LYX = 10**18
CREDITS = 10_000
SPONSORED = TYPESCRIPT_CLIENT / "examples/sponsored.ts"
WALLETS: dict[str, list[str | Path]] = {
    "eth-account": [sys.executable, PYTHON_CLIENT / "examples/wallet.py"],
    "viem": [*NODE, TYPESCRIPT_CLIENT / "examples/viem.ts"],
    "ethers": [*NODE, TYPESCRIPT_CLIENT / "examples/ethers.ts"],
}


@pytest.fixture
def profile(services: Services, transactional_db: None) -> Profile:
    """A profile with LYX and credits, on a service whose relayers are funded."""
    world = services.world
    made = world.create_profiles(ProfilePlan(balance_wei=LYX))[0]
    code = world.implementations
    trust_code(profile=code.universal_profile, key_manager=code.key_manager)
    world.fund(LYX, *get_signer().addresses())
    relayers.sync(now=timezone.now())
    owner = UserFactory.create(profile_address=made.profile_address)
    entries.grant(user=owner, credits=CREDITS, source=EntrySource.VIDEO_ADS, key=secrets.token_hex(8))
    return made


@pytest.fixture
def stack_file(
    services: Services, profile: Profile, live_server: LiveServer, tmp_path: Path, settings: Settings
) -> Path:
    """What the wallets know of the service."""
    settings.AUTH_DOMAIN = live_server.url.removeprefix("http://")
    stack = {
        "base_url": live_server.url,
        "rpc_url": services.rpc_url,
        "profiles": [
            {
                "profile_address": profile.profile_address,
                "controller_private_key": profile.controller.private_key,
            }
        ],
    }
    path = tmp_path / "stack.json"
    path.write_text(json.dumps(stack))
    return path


def test_each_wallet_signs_in_relays_and_waits(
    services: Services, profile: Profile, stack_file: Path
) -> None:
    install_node_packages(TYPESCRIPT_CLIENT, "what the TypeScript client is made with")
    left = CREDITS
    for name, command in WALLETS.items():
        output = output_of([*command, stack_file], services)

        settled = RelayTransaction.objects.latest("pk")
        assert output.splitlines() == [
            f"signed in as {profile.profile_address}, {left} credits",
            f"accepted as {settled.transaction_hash}",
            f"Success, {settled.real_cost} credits used, {left - settled.real_cost} left",
        ], name
        left -= settled.real_cost


def test_the_sponsor_of_the_dapp_pays_first_by_its_policy_and_then_for_a_voucher(
    services: Services, profile: Profile, stack_file: Path, tmp_path: Path
) -> None:
    install_node_packages(TYPESCRIPT_CLIENT, "what the TypeScript client is made with")
    sponsor, key = make_sponsor(CREDITS), random_key()
    VoucherSigner.objects.create(sponsor=sponsor, address=address_of(key))
    first = make_policy(sponsor, user_calls=1)
    vouched = make_policy(sponsor, position=1, profiles=ProfileRule.VOUCHED)
    stack_file.write_text(
        json.dumps(json.loads(stack_file.read_text()) | {"sponsor": {"name": sponsor.slug}})
    )
    names = {"sponsor": sponsor.slug, "policy": vouched.policy.name}
    with running_server(tmp_path, key=key, chain_id=settings.CHAIN_ID, **names) as server:
        for version in (first, vouched):
            output = output_of([*NODE, SPONSORED, stack_file, server], services)
            assert output == f"Success, 0 credits used, paid by {sponsor.slug}\n"
            assert SponsoredCall.objects.latest("pk").version_id == version.pk
    assert balance_of(User.objects.get(profile_address=profile.profile_address)).available == CREDITS


@pytest.mark.parametrize("name", WALLETS)
def test_each_wallet_is_thirty_lines(name: str) -> None:
    source = Path(WALLETS[name][-1]).read_text()
    comment = '"""\n' if name == "eth-account" else " */\n"

    code = [line for line in source.rpartition(comment)[2].splitlines() if line.strip()]

    assert len(code) <= 30
