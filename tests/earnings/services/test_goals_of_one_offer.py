"""AdGem's offers with several goals: one transaction, whose goals are each rewarded, and taken back, once."""

import hmac
import random
from dataclasses import replace

import pytest

from credits.queries import balance_of
from credits.services.reconciliation import find_differences
from earnings.models import Postback
from earnings.networks.base import PostbackResponse
from earnings.services import postbacks
from tests.earnings.ad_networks import NOW, Network, random_id, set_up
from tests.factories import UserFactory
from users.models import User

pytestmark = pytest.mark.django_db


def _report(
    network: Network, user: User, transaction: str, amount: int, *, goal: str | None, back: bool = False
) -> PostbackResponse:
    parameter = "" if goal is None else f"&goal_id={goal}"
    query = (
        f"player_id={network.reference(user)}&amount={amount}&payout={'-' if back else ''}0.25"
        f"&transaction_id={transaction}&campaign_id=7{parameter}&goal_name=Level%2010"
    )
    url = f"http://testserver/api/postbacks/adgem/{network.token}"
    verifier = hmac.new(network.secret.encode(), f"{url}?{query}".encode(), "sha256").hexdigest()
    request = network.request(network.reward(user))
    signed = replace(request, query=f"{query}&verifier={verifier}".encode())
    return postbacks.receive(slug="adgem", request=signed, now=NOW)


def test_each_goal_is_credited_once_and_taken_back_alone() -> None:
    user, network, transaction = UserFactory.create(), set_up("adgem"), random_id()
    amounts = {str(goal): random.randint(1, 300) for goal in (11, 12, 13)}
    for goal in [*amounts, *amounts]:
        assert _report(network, user, transaction, amounts[goal], goal=goal).status == 200
    assert balance_of(user).available == sum(amounts.values())

    assert _report(network, user, transaction, amounts["12"], goal="12", back=True).status == 200

    assert balance_of(user).available == amounts["11"] + amounts["13"]
    assert not Postback.objects.filter(is_conflicting=True).exists()
    assert find_differences() == []


@pytest.mark.parametrize("goal", [None, ""])
def test_without_a_goal_the_transaction_is_credited_once(goal: str | None) -> None:
    user, network, transaction = UserFactory.create(), set_up("adgem"), random_id()
    for amount in (40, 70):
        assert _report(network, user, transaction, amount, goal=goal).status == 200
    assert balance_of(user).available == 40
    assert Postback.objects.get().external_id == transaction
    assert Postback.objects.get().is_conflicting


@pytest.mark.parametrize("goal", ["{goal_id}", "a%20b", "9" * 200])
def test_an_unusable_goal_is_refused_and_nothing_is_stored(goal: str) -> None:
    user, network = UserFactory.create(), set_up("adgem")
    assert _report(network, user, random_id(), 40, goal=goal).status == 400
    assert not Postback.objects.exists()
