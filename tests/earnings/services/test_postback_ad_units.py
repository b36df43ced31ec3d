"""Google signs for every publisher: AdMob's rewards are accepted for our own ad units alone."""

import random
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.utils import timezone

from credits.models import CreditEntry
from credits.queries import balance_of
from devstack.ad_networks.signing import AD_UNIT, KEY_ID
from earnings.models import AdNetwork, Postback
from earnings.networks.base import PostbackResponse, RawRequest
from earnings.networks.signatures import unpadded
from earnings.services import networks, postbacks
from tests.earnings.ad_networks import Network, key_pair, random_id, set_up
from tests.factories import UserFactory
from users.models import User

pytestmark = pytest.mark.django_db


def _send(network: Network, user: User, **fields: str) -> PostbackResponse:
    """Send a reward that Google signed, and return the response."""
    fields = {
        "ad_network": "5450213213286189855",
        "ad_unit": AD_UNIT,
        "reward_amount": "7",
        "reward_item": "credits",
        "timestamp": f"{timezone.now().timestamp() * 1000:.0f}",
        "transaction_id": random_id(),
        "user_id": network.reference(user),
        **fields,
    }
    text = "&".join(f"{name}={fields[name]}" for name in sorted(fields))
    key = load_pem_private_key(key_pair()[0].encode(), None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    signature = unpadded(key.sign(text.encode(), ec.ECDSA(SHA256())))
    query = f"{text}&signature={signature}&key_id={KEY_ID}".encode()
    request = RawRequest(method="GET", url="", query=query, path_token=network.token)
    return postbacks.receive(slug="admob", request=request, now=timezone.now())


def test_another_publishers_ad_unit_earns_nothing() -> None:
    user, network = UserFactory.create(), set_up("admob")
    longer, shorter = f"{AD_UNIT}1", AD_UNIT[:-1]
    for unit in (str(random.randint(10**9, 10**10)), longer, shorter, f"{AD_UNIT} ", "", f"x{AD_UNIT}"):
        assert _send(network, user, ad_unit=unit) == PostbackResponse(400, "refused"), unit

    assert not Postback.objects.exists()
    assert not CreditEntry.objects.exists()


def test_each_listed_ad_unit_earns() -> None:
    other = str(random.randint(10**9, 10**10))
    user, network = UserFactory.create(), set_up("admob", allowed_ad_units=[other, AD_UNIT])

    assert [_send(network, user, ad_unit=unit).status for unit in (other, AD_UNIT)] == [200, 200]

    assert balance_of(user).available == 14


def test_admobs_test_postback_needs_no_listed_ad_unit() -> None:
    user, network = UserFactory.create(), set_up("admob")

    fields = {"ad_unit": "1234567890", "transaction_id": "123456789", "reward_amount": "7"}
    assert _send(network, user, **fields).status == 200

    assert balance_of(user).balance == 0


def test_admob_is_enabled_only_with_a_list_of_ad_units() -> None:
    with pytest.raises(ValidationError, match="ad unit"):
        networks.configure(slug="admob", is_enabled=True)
    row = networks.ensure(slug="admob")
    with pytest.raises(IntegrityError, match="ad_units"), transaction.atomic():
        AdNetwork.objects.filter(pk=row.pk).update(is_enabled=True)
    assert not AdNetwork.objects.get().is_enabled

    assert networks.configure(slug="admob", is_enabled=True, allowed_ad_units=[AD_UNIT]).is_enabled


@pytest.mark.parametrize(
    ("typed", "kept"),
    [
        ([f" {AD_UNIT} "], [AD_UNIT]),
        ([f"ca-app-pub-3940256099942544/{AD_UNIT}"], [AD_UNIT]),
        ([AD_UNIT, AD_UNIT], [AD_UNIT]),
    ],
)
def test_an_ad_unit_may_be_pasted_as_admob_shows_it(typed: list[str], kept: list[str]) -> None:
    assert networks.configure(slug="admob", allowed_ad_units=typed).allowed_ad_units == kept


@pytest.mark.parametrize("nonsense", ["", "ca-app-pub-3940256099942544", "12", "１２３４５６７８９０", "*"])
def test_malformed_ad_units_are_refused(nonsense: str) -> None:
    with pytest.raises(ValidationError) as refusal:
        networks.configure(slug="admob", allowed_ad_units=[nonsense])
    fields: dict[str, Any] = refusal.value.message_dict
    assert list(fields) == ["allowed_ad_units"]
