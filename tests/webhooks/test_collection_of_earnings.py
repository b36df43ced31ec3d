"""Messages about held earnings, and about credits that run low, are used up and come back."""

import json
import secrets
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from credits.models import CreditEntry
from credits.services import entries
from credits.services.holds import close
from earnings.models import Postback
from earnings.services import earnings
from tests.credits.holding import place_hold
from tests.earnings.ad_networks import Network, set_up
from tests.factories import UserFactory
from tests.webhooks.conftest import App
from users.models import User
from webhooks.models import CreditLevel, Message
from webhooks.services import collection

pytestmark = pytest.mark.django_db


def _told(*kinds: str) -> list[tuple[str, dict[str, Any]]]:
    """Collect twice, and return the events of these kinds in order, each with its data."""
    for _ in range(2):
        collection.collect(now=timezone.now())
    bodies = [json.loads(body) for body in Message.objects.order_by("pk").values_list("body", flat=True)]
    return [(body["type"], body["data"]) for body in bodies if body["type"].startswith(kinds)]


def _held(user: User, amount: str, network: Network) -> Postback:
    network.send(network.reward(user, amount=amount))
    return Postback.objects.latest("pk")


def test_an_earning_is_sent_when_it_is_held_and_when_it_is_released(app: App, user: User) -> None:
    network = set_up("tapjoy", hold_hours=24)
    network.send(network.reward(UserFactory.create()))
    row = _held(user, "120", network)
    base = {"address": str(user.profile_address), "earningId": row.pk, "network": "tapjoy", "credits": 120}
    due = row.received_at + timedelta(hours=24)
    held = {**base, "arrivesAt": int(due.timestamp()), "heldBecause": "network-hold"}
    assert _told("earning") == [("earning.held", held)]

    earnings.release_due(now=due)

    assert _told("earning") == [("earning.held", held), ("earning.released", base)]


def test_an_earning_beyond_a_cap_has_no_date_and_its_end_is_sent(app: App, user: User) -> None:
    network = set_up("tapjoy", per_event_cap=100)
    released, forfeited = (_held(user, amount, network) for amount in ("101", "102"))
    assert [(data["arrivesAt"], data["heldBecause"]) for _, data in _told("earning")] == [
        (None, "review")
    ] * 2

    earnings.release_early(postback_id=released.pk)
    earnings.forfeit(postback_id=forfeited.pk)

    ends = [(kind, data["earningId"], data["credits"]) for kind, data in _told("earning")[2:]]
    assert ends == [("earning.released", released.pk, 101), ("earning.reversed", forfeited.pk, 102)]


@pytest.mark.parametrize("hold_hours", [0, 24])
def test_a_networks_reversal_is_sent_with_its_earning(app: App, user: User, hold_hours: int) -> None:
    network = set_up("bitlabs", hold_hours=hold_hours)
    reward = network.reward(user, amount="100")
    for back in (False, True, True):
        amount = "30" if back else "100"
        network.send(network.reward(user, external_id=reward.external_id, amount=amount, is_reversal=back))
    credit = Postback.objects.get(kind="CREDIT")

    told = [(kind, data["earningId"], data["credits"]) for kind, data in _told("earning")]

    held = [("earning.held", credit.pk, 70)] if hold_hours else []
    assert told == [*held, ("earning.reversed", credit.pk, 30)]


def test_an_earning_that_is_credited_at_once_is_an_entry_alone(app: App, user: User) -> None:
    network = set_up("tapjoy")
    network.send(network.reward(user))

    assert _told("earning") == []
    assert [kind for kind, _ in _told("credits.posted")] == ["credits.posted"]


def _grant(user: User, credits: int) -> None:
    entries.grant(user=user, credits=credits, source="VIDEO_ADS", key=secrets.token_hex(8))


def _charge(user: User, credits: int) -> None:
    held = place_hold(user=user, credits=credits, key=secrets.token_hex(8))
    close(costs={held.hold.pk: credits})


def _levels(user: User) -> list[tuple[str, int, int, int | None]]:
    """Return what was told about the level, with a use that is read again each time."""
    CreditLevel.objects.update(use_read_at=timezone.now() - timedelta(days=1))
    told = _told("credits.low", "credits.depleted", "credits.recovered")
    return [(kind, data["credits"], data["dailyUse"], data["daysLeft"]) for kind, data in told]


def test_each_threshold_crossing_by_the_users_own_use_is_sent_once(app: App, user: User) -> None:
    _grant(user, 1_000)
    assert _levels(user) == []
    _charge(user, 200)  # 800 left: four days
    assert _levels(user) == []
    _charge(user, 60)  # 740 left of 260 a day: less than three days
    low = ("credits.low", 740, 260, 2)
    assert _levels(user) == [low]
    _charge(user, 10)
    _grant(user, 100)  # 830 left of 270 a day: three days, which are not five
    assert _levels(user) == [low]
    _charge(user, 830)
    depleted = ("credits.depleted", 0, 1_100, 0)
    assert _levels(user) == [low, depleted]
    _grant(user, 50)
    assert _levels(user) == [low, depleted]
    _grant(user, 5_450)
    recovered = ("credits.recovered", 5_500, 1_100, 5)
    assert _levels(user) == [low, depleted, recovered]
    assert CreditLevel.objects.get().crossings == 3


def test_without_use_no_credits_are_low(app: App, user: User) -> None:
    _grant(user, 5)
    entries.adjust(user=user, credits=-5, key=secrets.token_hex(8), actor=None, reason="test")
    assert _levels(user) == []


def test_levels_of_unaffected_users_are_not_read(app: App, user: User) -> None:
    other = UserFactory.create()
    _grant(other, 100)
    _charge(other, 99)

    assert _levels(other) == []
    assert not CreditLevel.objects.filter(user=other).exists()
    assert CreditEntry.objects.count() == 2
