"""The Python example, run as a reader runs it, against the service on a real chain."""

import json
import secrets
import subprocess
import sys
import time
from pathlib import Path

import pytest
from django.conf import settings
from django.utils import timezone
from pytest_django.live_server_helper import LiveServer

from credits.models import EntrySource
from credits.services import entries
from devstack.services.stack import Services
from devstack.world.profiles import Profile, ProfilePlan
from gateway.chain.signing import get_signer
from relay.models import Relayer, RelayTransaction
from relay.services import broadcasting, relayers, tracking
from tests.docs.pages import DOCS
from tests.factories import UserFactory
from users.services import trusted_code

LYX = 10**18
CREDITS = 10_000


@pytest.fixture
def profile(services: Services, transactional_db: None) -> Profile:
    """A profile with LYX and credits, on a service whose relayers are funded."""
    world = services.world
    made = world.create_profiles(ProfilePlan(balance_wei=LYX))[0]
    for kind, address in (
        ("profile", world.implementations.universal_profile),
        ("key-manager", world.implementations.key_manager),
    ):
        trusted_code.trust(kind=kind, address=address, name="tests")
    world.fund(LYX, *get_signer().addresses())
    relayers.sync(now=timezone.now())
    owner = UserFactory.create(profile_address=made.profile_address)
    entries.grant(user=owner, credits=CREDITS, source=EntrySource.VIDEO_ADS, key=secrets.token_hex(8))
    return made


def test_the_python_example_signs_in_relays_and_waits(
    services: Services, profile: Profile, live_server: LiveServer, tmp_path: Path
) -> None:
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
    (tmp_path / "stack.json").write_text(json.dumps(stack))
    client = subprocess.Popen(
        [sys.executable, DOCS / "examples/python/relay.py", tmp_path / "stack.json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    deadline = time.monotonic() + 120
    while client.poll() is None and time.monotonic() < deadline:
        _work(services)
    client.kill()

    output, _ = client.communicate()
    settled = RelayTransaction.objects.get()
    assert output.splitlines() == [
        f"signed in as {profile.profile_address}, {CREDITS} credits",
        f"accepted as {settled.transaction_hash}",
        f"Success, {settled.real_cost} credits used, {CREDITS - settled.real_cost} left",
    ]


def _work(services: Services) -> None:
    """Do what worker and beat do."""
    for relayer in Relayer.objects.all():
        broadcasting.broadcast(relayer_id=relayer.pk, now=timezone.now())
    services.rpc.call("anvil_mine", hex(settings.CONFIRMATIONS))
    tracking.track(now=timezone.now())
    time.sleep(0.1)
