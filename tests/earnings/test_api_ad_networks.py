"""GET /api/user/adNetworks: the names under which the networks know the signed-in user."""

from typing import Any

import pytest
from rest_framework.test import APIClient

from earnings.models import NetworkUser
from earnings.services import networks as earnings_networks
from tests.earnings.ad_networks import set_up
from tests.factories import UserFactory

pytestmark = pytest.mark.django_db


def _ask(user: Any, path: str = "/api/user/adNetworks") -> Any:
    client = APIClient()
    client.force_authenticate(user)
    return client.get(path)


@pytest.mark.parametrize("path", ["/api/user/adNetworks", "/api/user/adNetworks/"])
def test_each_enabled_network_has_a_name_of_its_own_for_the_user(path: str) -> None:
    user, other = UserFactory.create(), UserFactory.create()
    networks = {slug: set_up(slug) for slug in ("tapjoy", "bitlabs")}
    set_up("adgem", is_enabled=False)

    answer = _ask(user, path)

    assert (answer.status_code, answer.headers["Cache-Control"]) == (200, "no-store")
    assert answer.json() == {
        "networks": [
            {
                "network": "bitlabs",
                "kind": "SURVEYS",
                "userReference": networks["bitlabs"].reference(user),
            },
            {
                "network": "tapjoy",
                "kind": "OFFERWALL",
                "userReference": networks["tapjoy"].reference(user),
            },
        ]
    }
    names = {named["userReference"] for who in (user, other) for named in _ask(who).json()["networks"]}
    assert len(names) == 4
    assert all(len(name) == 32 and str(user.profile_address)[2:].lower() not in name for name in names)


def test_the_names_stay_whatever_becomes_of_the_key(settings: Any) -> None:
    user = UserFactory.create()
    set_up("tapjoy")
    before = _ask(user).json()
    settings.SECRET_KEY = "another key of the whole service"

    assert _ask(user).json() == before
    assert NetworkUser.objects.count() == 1


def test_asking_again_costs_two_statements(django_assert_num_queries: Any) -> None:
    user = UserFactory.create()
    for slug in ("tapjoy", "bitlabs", "adgem"):
        set_up(slug)
    _ask(user)

    with django_assert_num_queries(2):
        _ask(user)


def test_a_name_leads_its_earnings_to_the_user() -> None:
    user, network = UserFactory.create(), set_up("tapjoy")
    (known,) = _ask(user).json()["networks"]

    assert network.send(network.reward(UserFactory.create(), user=known["userReference"])).status == 200
    assert user.credit_account.balance > 0


def test_without_a_network_the_answer_is_an_object_still() -> None:
    assert _ask(UserFactory.create()).json() == {"networks": []}


@pytest.mark.parametrize("kind", ["nobody", "staff"])
def test_only_profiles_have_names(kind: str) -> None:
    earnings_networks.ensure(slug="tapjoy")
    staff = UserFactory.create(profile_address=None, is_staff=True)

    answer = APIClient().get("/api/user/adNetworks") if kind == "nobody" else _ask(staff)

    assert answer.status_code == 401
    assert not NetworkUser.objects.exists()
