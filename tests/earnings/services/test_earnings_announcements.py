"""Stateful callbacks: what a network announces is not credited before it has decided."""

import hashlib
import hmac
from itertools import permutations

import pytest
from django.utils import timezone

from credits.models import CreditEntry
from credits.queries import balance_of
from earnings.models import Postback, PostbackState
from earnings.networks.base import RawRequest
from earnings.services import postbacks
from tests.earnings.ad_networks import SENDER, Network, random_id, set_up
from tests.factories import UserFactory
from users.models import User

pytestmark = pytest.mark.django_db


def _send_state(network: Network, user: User, tx: str, state: str) -> int:
    """Send a state of an offer worth 40 as BitLabs does."""
    query = f"uid={network.reference(user)}&tx={tx}&val=40&raw=0.4&type=COMPLETE&state={state}&ref="
    url = f"http://testserver/api/postbacks/bitlabs/{network.token}"
    signature = hmac.new(network.secret.encode(), f"{url}?{query}".encode(), hashlib.sha1).hexdigest()
    request = RawRequest(
        method="GET",
        url=url,
        query=f"{query}&hash={signature}".encode(),
        path_token=network.token,
        sender=SENDER,
    )
    return postbacks.receive(slug="bitlabs", request=request, now=timezone.now()).status


def _states() -> dict[str, str]:
    return dict(Postback.objects.values_list("kind", "state"))


def test_an_announcement_credits_nothing_and_its_completion_does() -> None:
    user, network, tx = UserFactory.create(), set_up("bitlabs"), random_id()

    assert _send_state(network, user, tx, "PENDING") == 200
    assert _states() == {"PENDING": PostbackState.PENDING}
    assert not CreditEntry.objects.exists()

    assert _send_state(network, user, tx, "COMPLETED") == 200
    assert _states() == {"PENDING": PostbackState.INFO, "CREDIT": PostbackState.AVAILABLE}
    assert balance_of(user).available == 40


def test_a_rejected_announcement_is_reversed() -> None:
    user, network, tx = UserFactory.create(), set_up("bitlabs"), random_id()
    _send_state(network, user, tx, "PENDING")

    _send_state(network, user, tx, "REJECTED")

    assert _states() == {"PENDING": PostbackState.REVERSED, "REVERSAL": PostbackState.RECEIVED}
    assert not CreditEntry.objects.exists()


@pytest.mark.parametrize("order", list(permutations(["PENDING", "COMPLETED", "RECONCILED"])))
def test_three_states_in_any_order_end_with_nothing(order: tuple[str, ...]) -> None:
    user, network, tx = UserFactory.create(), set_up("bitlabs"), random_id()

    for state in (*order, *order):
        assert _send_state(network, user, tx, state) == 200

    assert balance_of(user).available == 0
    states = _states()
    assert states["CREDIT"] == states["REVERSAL"] == PostbackState.REVERSED
    assert states["PENDING"] in {PostbackState.INFO, PostbackState.REVERSED}
    assert Postback.objects.count() == 3


@pytest.mark.parametrize("order", list(permutations(["PENDING", "REVIEWING", "COMPLETED"])))
def test_announcements_in_any_order_with_a_completion_end_with_one_credit(order: tuple[str, ...]) -> None:
    user, network, tx = UserFactory.create(), set_up("bitlabs"), random_id()

    for state in order:
        _send_state(network, user, tx, state)

    assert balance_of(user).available == 40
    assert _states() == {"PENDING": PostbackState.INFO, "CREDIT": PostbackState.AVAILABLE}
