"""A reversal that names another user than its credit takes nothing back, and does not keep the right one out."""

import logging
from itertools import permutations

import pytest

from credits.models import CreditEntry
from credits.queries import balance_of
from credits.services.reconciliation import find_differences
from earnings.models import Postback, PostbackState
from tests.earnings.ad_networks import Network, set_up
from tests.factories import UserFactory
from users.models import User

pytestmark = pytest.mark.django_db
_STATE = PostbackState


def _rows(user: User) -> list[tuple[str, str, str]]:
    rows = Postback.objects.filter(user=user).order_by("kind")
    return list(rows.values_list("kind", "state", "refused_because"))


@pytest.fixture(params=["bitlabs", "cpx-research"])
def network(request: pytest.FixtureRequest, db: None) -> Network:
    """Return a network that signs everything, and one that signs no user."""
    return set_up(request.param, **({"hold_hours": 0} if request.param != "cpx-research" else {}))


@pytest.mark.parametrize("order", permutations(["credit", "strange", "right"]))
def test_a_reversal_of_the_wrong_user_does_not_block_the_right_one(
    network: Network, order: tuple[str, ...]
) -> None:
    user, other_user = UserFactory.create(), UserFactory.create()
    credit = network.reward(user, amount="120")
    rewards = {
        "credit": credit,
        "right": network.reward(user, external_id=credit.external_id, amount="120", is_reversal=True),
        "strange": network.reward(other_user, external_id=credit.external_id, amount="120", is_reversal=True),
    }

    assert [network.send(rewards[which]).status for which in order] == [200] * 3

    assert balance_of(user).available == balance_of(other_user).available == 0
    assert _rows(user) == [("CREDIT", _STATE.REVERSED, ""), ("REVERSAL", _STATE.REVERSED, "")]
    assert _rows(other_user) == [("REVERSAL", _STATE.REFUSED, "ANOTHERS_CREDIT")]
    assert find_differences() == []


def test_a_reversal_of_the_wrong_user_takes_nothing_back_and_is_logged(
    network: Network, caplog: pytest.LogCaptureFixture
) -> None:
    user, other_user = UserFactory.create(), UserFactory.create()
    credit = network.reward(user, amount="120")
    network.send(credit)
    entries = CreditEntry.objects.count()

    with caplog.at_level(logging.ERROR):
        for _ in range(2):
            network.send(
                network.reward(other_user, external_id=credit.external_id, amount="120", is_reversal=True)
            )

    assert CreditEntry.objects.count() == entries
    assert Postback.objects.get(kind="CREDIT").state in {_STATE.AVAILABLE, _STATE.HELD}
    assert _rows(other_user) == [("REVERSAL", _STATE.REFUSED, "ANOTHERS_CREDIT")]
    assert [record.getMessage() for record in caplog.records if "names another user" in record.getMessage()]


def test_the_same_credit_for_a_second_user_is_a_repeat_and_pays_nothing(network: Network) -> None:
    user, other_user = UserFactory.create(), UserFactory.create()
    credit = network.reward(user, amount="120")
    network.send(credit)

    network.send(network.reward(other_user, external_id=credit.external_id, amount="120"))

    assert Postback.objects.count() == 1
    assert Postback.objects.get().is_conflicting
    assert balance_of(other_user).balance == 0
