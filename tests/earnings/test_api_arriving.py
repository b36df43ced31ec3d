"""GET /api/user/arriving: the signed-in profile's earnings that are held."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone
from rest_framework.test import APIClient

from earnings.models import Postback
from earnings.services import networks
from earnings.services.earnings import release_due
from tests.earnings.ad_networks import set_up
from tests.factories import UserFactory

pytestmark = pytest.mark.django_db


def _get(user: Any) -> Any:
    client = APIClient()
    client.force_authenticate(user)
    return client.get("/api/user/arriving")


def _wire(moment: datetime) -> str:
    return moment.isoformat().replace("+00:00", "Z")


def test_held_earnings_are_listed_by_arrival_with_their_cause() -> None:
    user = UserFactory.create()
    slow, fast = set_up("tapjoy", hold_hours=72, per_event_cap=500), set_up("bitlabs", hold_hours=24)
    for network, amount in ((slow, "600"), (slow, "40"), (fast, "7")):
        network.send(network.reward(user, amount=amount))
    fast.send(fast.reward(UserFactory.create()))
    beyond, late, soon = Postback.objects.filter(user=user).order_by("pk")

    response = _get(user)

    assert (response.status_code, response.headers["Cache-Control"]) == (200, "no-store")
    assert response.json() == {
        "count": 3,
        "credits": 647,
        "earnings": [
            {
                "network": row.network.slug,
                "networkName": title,
                "credits": worth,
                "receivedAt": _wire(row.received_at),
                "arrivesAt": row.available_at and _wire(row.available_at),
                "heldBecause": because,
            }
            for row, title, worth, because in (
                (soon, "BitLabs", 7, "network-hold"),
                (late, "Tapjoy", 40, "network-hold"),
                (beyond, "Tapjoy", 600, "review"),
            )
        ],
    }


def test_a_partial_reversal_is_subtracted_and_a_full_one_removes_the_earning() -> None:
    user, network = UserFactory.create(), set_up("bitlabs", hold_hours=24)
    rewards = [network.reward(user, amount="100") for _ in range(2)]
    for reward, back in zip(rewards, ("30", "100"), strict=True):
        network.send(reward)
        network.send(network.reward(user, external_id=reward.external_id, amount=back, is_reversal=True))

    body = _get(user).json()

    assert (body["count"], body["credits"], [row["credits"] for row in body["earnings"]]) == (1, 70, [70])


def test_an_earning_of_a_paused_network_has_no_date_and_a_credited_one_is_not_listed() -> None:
    user, network = UserFactory.create(), set_up("tapjoy", hold_hours=24)
    network.send(network.reward(user))
    networks.switch(slug="tapjoy", is_enabled=False)

    (row,) = _get(user).json()["earnings"]
    assert (row["arrivesAt"], row["heldBecause"]) == (None, "network-paused")

    networks.switch(slug="tapjoy", is_enabled=True)
    release_due(now=timezone.now() + timedelta(days=2))
    assert _get(user).json() == {"count": 0, "credits": 0, "earnings": []}


def test_many_held_earnings_are_read_in_two_statements_and_a_hundred_are_listed(
    django_assert_num_queries: Any,
) -> None:
    user, network = UserFactory.create(), set_up("bitlabs", hold_hours=24)
    for _ in range(102):
        network.send(network.reward(user, amount="1"))

    with django_assert_num_queries(2):
        body = _get(user).json()

    assert (body["count"], body["credits"], len(body["earnings"])) == (102, 102, 100)


def test_arriving_earnings_need_a_token() -> None:
    assert APIClient().get("/api/user/arriving").status_code == 401
