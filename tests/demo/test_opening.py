"""Ad networks of a start: open, with secrets of their own, and what the networks' side signs is understood."""

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
from earnings.networks.base import Answer, RawRequest
from earnings.services import networks as earnings_networks
from earnings.services import postbacks
from users.services.profiles import user_of_profile

pytestmark = pytest.mark.django_db


@pytest.fixture
def google() -> Iterator[VerifierKeys]:
    """Serve a list of verifier keys and let the service read it there."""
    with serve_verifier_keys() as served:
        settings.ADMOB_KEYS_URL = served.url
        yield served


@pytest.fixture
def networks(google: VerifierKeys) -> dict[str, dict[str, Any]]:
    """Open all networks; return what a stack's description says of them."""
    opened = enable_networks(now=timezone.now())
    return described_networks(opened, base_url=settings.PUBLIC_URL, admob_key=google.private_key)


def something(slug: str, amount: int) -> Reward:
    """Return an earning of somebody new."""
    user = user_of_profile(profile_address="0x" + secrets.token_hex(20))
    reference = earnings_networks.reference_of(user=user, network=AdNetwork.objects.get(slug=slug))
    return Reward(external_id=secrets.token_hex(8), user=reference, amount=str(amount), at=timezone.now())


def hear(slug: str, address: str, sent: SignedPostback) -> Answer:
    """Let the service hear what was sent to an address."""
    token = sent.path_token or address.rsplit("/", 1)[1]
    request = RawRequest(
        method="GET",
        url=address,
        query=sent.query.encode(),
        headers={name.lower(): value for name, value in sent.headers.items()},
        path_token=token,
        sender="127.0.0.1",
    )
    return postbacks.receive(slug=slug, request=request, now=timezone.now())


@pytest.mark.parametrize("slug", sorted(SIGNERS))
def test_what_each_network_signs_is_credited_and_one_changed_byte_is_refused(
    slug: str, networks: dict[str, dict[str, Any]]
) -> None:
    network, amount = networks[slug], secrets.randbelow(900) + 100
    told = something(slug, amount)
    sent = sign(slug, told, url=network["address"], secret=network["secret"])
    refused = hear(slug, network["address"], changed(sent, told))
    assert refused == ADAPTERS[slug].answers.reject
    assert not Postback.objects.exists()

    answer = hear(slug, network["address"], sent)

    assert answer.status == 200
    row = Postback.objects.get()
    assert row.credits == int(amount * Decimal(network["rate"]))
    assert (row.entry is None) is bool(network["hold_hours"])


def changed(sent: SignedPostback, told: Reward) -> SignedPostback:
    """Change one byte of the id, which every signature covers."""
    wrong = ("0" if told.external_id[0] != "0" else "1") + told.external_id[1:]
    if sent.path_token is None:
        return replace(sent, query=sent.query.replace(told.external_id, wrong))
    flipped = "A" if sent.path_token[4] != "A" else "B"
    return replace(sent, path_token=sent.path_token[:4] + flipped + sent.path_token[5:])


def test_another_start_gives_new_secrets_and_leaves_what_staff_have_set(google: VerifierKeys) -> None:
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


def test_the_weak_network_is_open_for_this_machine_alone_and_within_caps(google: VerifierKeys) -> None:
    enable_networks(now=timezone.now())

    (weak,) = AdNetwork.objects.filter(is_weak=True)

    assert (weak.slug, weak.is_enabled, weak.allowed_addresses) == (
        "cpx-research",
        True,
        ["127.0.0.1", "::1"],
    )
    assert weak.per_event_cap
    assert weak.daily_cap
    assert weak.hold_hours
