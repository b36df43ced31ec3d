"""GET /api/user/adNetworks: the references by which the networks know the signed-in user."""

import random
from typing import Any

import pytest
from rest_framework.test import APIClient

from earnings.models import NetworkUser
from earnings.services import networks as earnings_networks
from tests.earnings.ad_networks import set_up
from tests.factories import UserFactory

pytestmark = pytest.mark.django_db


def _get(user: Any, path: str = "/api/user/adNetworks") -> Any:
    client = APIClient()
    client.force_authenticate(user)
    return client.get(path)


@pytest.mark.parametrize("path", ["/api/user/adNetworks", "/api/user/adNetworks/"])
def test_each_enabled_network_has_its_own_reference_of_the_user(path: str) -> None:
    user, other = UserFactory.create(), UserFactory.create()
    networks = {slug: set_up(slug) for slug in ("tapjoy", "bitlabs")}
    set_up("adgem", is_enabled=False)

    response = _get(user, path)

    assert (response.status_code, response.headers["Cache-Control"]) == (200, "no-store")
    assert response.json() == {
        "networks": [
            {
                "network": "bitlabs",
                "networkName": "BitLabs",
                "kind": "SURVEYS",
                "userReference": networks["bitlabs"].reference(user),
                "offersUrl": None,
                "holdHours": 0,
                "typicalCredits": None,
            },
            {
                "network": "tapjoy",
                "networkName": "Tapjoy",
                "kind": "OFFERWALL",
                "userReference": networks["tapjoy"].reference(user),
                "offersUrl": None,
                "holdHours": 0,
                "typicalCredits": None,
            },
        ]
    }
    names = {named["userReference"] for who in (user, other) for named in _get(who).json()["networks"]}
    assert len(names) == 4
    assert all(len(name) == 32 and str(user.profile_address)[2:].lower() not in name for name in names)


def test_a_networks_page_of_offers_has_the_users_reference() -> None:
    user = UserFactory.create()
    set_up("bitlabs", offers_url="https://offers.example/?token=a%20b&uid={reference}#top")

    (network,) = _get(user).json()["networks"]

    reference = network["userReference"]
    assert network["offersUrl"] == f"https://offers.example/?token=a%20b&uid={reference}#top"


def test_a_typical_amount_is_told_from_ten_earnings_on() -> None:
    user, network = UserFactory.create(), set_up("bitlabs", rate=1)
    amounts = random.sample(range(1, 900), 11)
    for number, amount in enumerate(amounts, 1):
        (shown,) = _get(user).json()["networks"]
        assert (shown["typicalCredits"] is None) == (number <= 10)
        network.send(network.reward(user, amount=str(amount)))
    typical = _get(user).json()["networks"][0]["typicalCredits"]
    assert min(amounts) < typical < max(amounts) + 50


def test_references_stay_when_the_secret_key_changes(settings: Any) -> None:
    user = UserFactory.create()
    set_up("tapjoy")
    before = _get(user).json()
    settings.SECRET_KEY = "another key of the whole service"

    assert _get(user).json() == before
    assert NetworkUser.objects.count() == 1


def test_a_second_request_takes_three_statements(django_assert_num_queries: Any) -> None:
    user = UserFactory.create()
    for slug in ("tapjoy", "bitlabs", "adgem"):
        set_up(slug)
    _get(user)

    with django_assert_num_queries(3):
        _get(user)


def test_a_postback_with_the_reference_credits_the_user() -> None:
    user, network = UserFactory.create(), set_up("tapjoy")
    (network_of_user,) = _get(user).json()["networks"]

    assert (
        network.send(network.reward(UserFactory.create(), user=network_of_user["userReference"])).status
        == 200
    )
    assert user.credit_account.balance > 0


def test_without_networks_the_response_is_an_empty_list_in_an_object() -> None:
    assert _get(UserFactory.create()).json() == {"networks": []}


@pytest.mark.parametrize("kind", ["nobody", "staff"])
def test_only_profiles_have_references(kind: str) -> None:
    earnings_networks.ensure(slug="tapjoy")
    staff = UserFactory.create(profile_address=None, is_staff=True)

    response = APIClient().get("/api/user/adNetworks") if kind == "nobody" else _get(staff)

    assert response.status_code == 401
    assert not NetworkUser.objects.exists()
