"""The demo's ad networks: enabled with new secrets, and postbacks signed for them are credited."""

import secrets
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from django.conf import settings
from django.utils import timezone

from devstack.ad_networks.demo import VerifierKeys, enable_networks, serve_verifier_keys
from devstack.ad_networks.signing import SIGNERS, Reward, SignedPostback, sign
from devstack.stack_file import described_networks
from earnings.models import AdNetwork, Postback
from earnings.networks import ADAPTERS
from earnings.networks.base import PostbackResponse, RawRequest
from earnings.services import networks as earnings_networks
from earnings.services import postbacks
from users.services.profiles import user_of_profile

pytestmark = pytest.mark.django_db


@pytest.fixture
def google() -> Iterator[VerifierKeys]:
    """Serve a list of verifier keys and make the service read it there."""
    with serve_verifier_keys() as served:
        settings.ADMOB_KEYS_URL = served.url
        yield served


@pytest.fixture
def networks(google: VerifierKeys) -> dict[str, dict[str, Any]]:
    """Open all networks; return their entries in a stack's description."""
    enabled = enable_networks(now=timezone.now())
    return described_networks(enabled, base_url=settings.PUBLIC_URL, admob_key=google.private_key)


def reward_of_new_user(slug: str, amount: int) -> Reward:
    """Return a reward of a new user."""
    user = user_of_profile(profile_address="0x" + secrets.token_hex(20))
    reference = earnings_networks.reference_of(user=user, network=AdNetwork.objects.get(slug=slug))
    return Reward(external_id=secrets.token_hex(8), user=reference, amount=str(amount), at=timezone.now())


def receive(slug: str, address: str, signed: SignedPostback) -> PostbackResponse:
    """Return the service's response to a request to an address."""
    token = signed.path_token or address.rsplit("/", 1)[1]
    request = RawRequest(
        method="GET",
        url=address,
        query=signed.query.encode(),
        headers={name.lower(): value for name, value in signed.headers.items()},
        path_token=token,
        sender="127.0.0.1",
    )
    return postbacks.receive(slug=slug, request=request, now=timezone.now())


@pytest.mark.parametrize("slug", sorted(SIGNERS))
def test_a_signed_postback_is_credited_and_one_with_a_changed_byte_refused(
    slug: str, networks: dict[str, dict[str, Any]]
) -> None:
    network, amount = networks[slug], secrets.randbelow(900) + 100
    reward = reward_of_new_user(slug, amount)
    signed = sign(slug, reward, url=network["address"], secret=network["secret"])
    refused = receive(slug, network["address"], changed(signed, reward))
    assert refused == ADAPTERS[slug].responses.reject
    assert not Postback.objects.exists()

    response = receive(slug, network["address"], signed)

    assert response.status == 200
    row = Postback.objects.get()
    assert row.credits == int(amount * Decimal(network["rate"]))
    assert (row.entry is None) is bool(network["hold_hours"])


def changed(signed: SignedPostback, reward: Reward) -> SignedPostback:
    """Change one byte of the id, which every signature covers."""
    wrong = ("0" if reward.external_id[0] != "0" else "1") + reward.external_id[1:]
    if signed.path_token is None:
        return replace(signed, query=signed.query.replace(reward.external_id, wrong))
    other = "A" if signed.path_token[4] != "A" else "B"
    return replace(signed, path_token=signed.path_token[:4] + other + signed.path_token[5:])


def test_another_start_issues_new_secrets_and_keeps_staff_settings(google: VerifierKeys) -> None:
    first = enable_networks(now=timezone.now())
    earnings_networks.configure(slug="tapjoy", rate=Decimal("9.5"))
    earnings_networks.configure(slug="bitlabs", is_enabled=False)

    second = enable_networks(now=timezone.now())

    assert set(first) == set(second) == set(ADAPTERS)
    assert second["tapjoy"]["rate"] == "9.5"
    assert not AdNetwork.objects.get(slug="bitlabs").is_enabled
    row = AdNetwork.objects.get(slug="tapjoy")
    assert earnings_networks.live_secrets(row) == [second["tapjoy"]["secret"], first["tapjoy"]["secret"]]
    assert earnings_networks.has_path_token(row, second["tapjoy"]["token"])
    assert not earnings_networks.has_path_token(row, first["tapjoy"]["token"])


def test_weak_networks_accept_this_machine_alone_within_caps(google: VerifierKeys) -> None:
    enable_networks(now=timezone.now())

    weak = list(AdNetwork.objects.filter(is_weak=True))

    assert "cpx-research" in {network.slug for network in weak}
    for network in weak:
        assert (network.is_enabled, network.allowed_addresses) == (True, ["127.0.0.1", "::1"])
        assert network.per_event_cap
        assert network.daily_cap
        assert network.hold_hours
