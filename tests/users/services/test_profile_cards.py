"""A profile's name and picture: read with care, verified, and nothing at all where anything is wrong."""

import json
from base64 import b64decode
from typing import Any

import pytest
from django.utils.timezone import now
from eth_hash.auto import keccak
from rest_framework.test import APIClient

from devstack.services.stack import Services
from devstack.world.cards import card as card_value
from devstack.world.profiles import ProfilePlan
from gateway.chain.client import get_chain_client, set_chain_client
from gateway.chain.lsp3 import PROFILE_KEY, decode_verifiable_uri
from tests.factories import UserFactory, random_address
from tests.fakes.chain import FakeChain
from tests.fakes.profiles import Profile
from tests.users.auth_client import signed_in
from users.models import ProfileCard, User
from users.services import profile_cards

pytestmark = pytest.mark.django_db
PNG = b"\x89PNG\r\n\x1a\n" + b"picture"


@pytest.fixture(autouse=True)
def _switched_on(settings: Any) -> None:
    settings.IPFS_GATEWAY_URL = "https://ipfs.invalid"


def image(content: bytes, width: float = 96, **changed: Any) -> dict[str, Any]:
    verification = {"method": "keccak256(bytes)", "data": "0x" + keccak(content).hex()}
    return {
        "width": width,
        "url": "data:image/png," + percent(content),
        "verification": verification,
        **changed,
    }


def percent(content: bytes) -> str:
    return "".join(f"%{byte:02x}" for byte in content)


def verifiable_uri(url: str, content: bytes) -> bytes:
    """Return the data value of LSP-2 for an address with this content: zeros, keccak256(bytes), 32 bytes, hash."""
    return bytes.fromhex("0000 8019f9b1 0020") + keccak(content) + url.encode()


def shown(chain: FakeChain, profile: Any, *, url: str = "", content: bytes | None = None) -> ProfileCard:
    """Have the profile show a document, and read its card."""
    document = json.dumps({"LSP3Profile": profile}).encode() if content is None else content
    user = UserFactory.create()
    key = (str(user.profile_address), PROFILE_KEY)
    chain.data[key] = verifiable_uri(url or "data:application/json," + percent(document), document)
    profile_cards.refresh(user_id=user.pk, now=now())
    return ProfileCard.objects.get(user=user)


def test_the_name_and_the_smallest_sufficient_picture_are_kept(chain: FakeChain) -> None:
    pictures = [image(PNG + b"large", 1200), image(PNG + b"right", 180), image(PNG + b"tiny", 32)]
    card = shown(chain, {"name": " ada\u202e\n" + "x" * 200, "profileImage": pictures})
    assert card.name == "ada" + "x" * 77
    assert (bytes(card.picture), card.picture_type) == (PNG + b"right", "png")


@pytest.mark.parametrize(
    "profile",
    [
        {"name": "ada", "profileImage": [image(b"<svg onload='alert(1)'/>")]},
        {"name": "ada", "profileImage": [image(PNG, verification={"method": "keccak256(bytes)", "data": "0x00"})]},
        {"name": "ada", "profileImage": [image(PNG, verification=None)]},
        {"name": "ada", "profileImage": [image(PNG, float("inf"))]},
        {"name": "ada", "profileImage": [image(PNG, url="https://127.0.0.1/picture")]},
        {"name": "ada", "profileImage": [image(PNG, url="http://example.com/picture")]},
        {"name": "ada", "profileImage": [image(PNG, url="https://169.254.169.254/latest/meta-data")]},
        {"name": "ada", "profileImage": [image(PNG, url="file:///etc/passwd")]},
        {"name": "ada", "profileImage": "none"},
        {"name": "ada"},
    ],
)  # fmt: skip
def test_a_picture_that_cannot_be_trusted_is_none(chain: FakeChain, profile: dict[str, Any]) -> None:
    card = shown(chain, profile)
    assert (card.name, bytes(card.picture), profile_cards.picture_uri(card)) == ("ada", b"", None)


@pytest.mark.parametrize(
    "content", [b"no JSON", b"[]", b'{"LSP3Profile": 1}', b'{"a": "%s"}' % (b"x" * 70_000)]
)
def test_a_document_that_is_none_shows_nothing(chain: FakeChain, content: bytes) -> None:
    assert shown(chain, None, content=content).name == ""


def test_another_document_than_the_chain_names_shows_nothing(chain: FakeChain) -> None:
    other = json.dumps({"LSP3Profile": {"name": "eve"}}).encode()
    assert shown(chain, {"name": "ada"}, url="data:application/json," + percent(other)).name == ""


def test_nodes_that_are_away_leave_the_card_as_it_was(chain: FakeChain) -> None:
    card = shown(chain, {"name": "ada"})
    with chain.away():
        profile_cards.refresh(user_id=card.user_id, now=now())
    card.refresh_from_db()
    assert card.name == "ada"


def test_a_signed_in_profile_reads_its_card_and_only_where_it_is_switched_on(
    client: APIClient, chain: FakeChain, profile: Profile, settings: Any
) -> None:
    access = signed_in(profile).access
    user = User.objects.get(profile_address=profile.profile_address)

    def answer() -> Any:
        return client.get("/api/user/profile", HTTP_AUTHORIZATION=f"Bearer {access}")

    assert answer().json() == {"name": "", "picture": None}
    document = json.dumps({"LSP3Profile": {"name": "ada", "profileImage": [image(PNG)]}}).encode()
    url = "data:application/json," + percent(document)
    chain.data[profile.profile_address, PROFILE_KEY] = verifiable_uri(url, document)
    settings.IPFS_GATEWAY_URL = ""
    profile_cards.refresh(user_id=user.pk, now=now())
    assert not ProfileCard.objects.exists()
    settings.IPFS_GATEWAY_URL = "https://ipfs.invalid"
    profile_cards.refresh(user_id=user.pk, now=now())
    assert answer().json()["name"] == "ada"
    head, _, body = answer().json()["picture"].partition(",")
    assert (head, b64decode(body)) == ("data:image/png;base64", PNG)
    assert answer()["X-Content-Type-Options"] == "nosniff"


def test_the_card_of_a_real_profile_is_read(services: Services) -> None:
    set_chain_client(None)
    (made,) = services.world.create_profiles(ProfilePlan(card=card_value("grace", (1, 2, 3))))
    user = UserFactory.create(profile_address=made.profile_address)
    profile_cards.refresh(user_id=user.pk, now=now())
    card = ProfileCard.objects.get(user=user)
    assert (card.name, card.picture_type) == ("grace", "png")
    assert get_chain_client().read_data(profile=random_address(), key=PROFILE_KEY) == b""


def test_both_forms_of_a_verifiable_address_are_read_and_nothing_else() -> None:
    document = b"{}"
    value = verifiable_uri("ipfs://Qm", document)
    older = bytes.fromhex("6f357c6a") + keccak(document) + b"ipfs://Qm"
    for form in (value, older):
        uri = decode_verifiable_uri(form)
        assert uri is not None
        assert (uri.url, uri.is_of(document), uri.is_of(b"{} ")) == ("ipfs://Qm", True, False)
    for wrong in (b"", bytes(8), bytes(2) + value[3:], value[:-1] + b"\xff"):
        assert decode_verifiable_uri(wrong) is None
