"""Staff release held credits early, or forfeit them."""

import random
from collections.abc import Callable
from datetime import timedelta
from functools import partial

import pytest
from django.utils import timezone

from credits.models import CreditEntry
from credits.queries import balance_of
from credits.services.reconciliation import find_differences
from earnings.errors import EarningDecided
from earnings.models import Postback, PostbackState
from earnings.services import networks
from earnings.services.earnings import forfeit, release_due, release_early
from tests.earnings.ad_networks import Network, set_up
from tests.factories import UserFactory
from tests.threads import at_once
from users.models import User


def _earn(network: Network, amount: int) -> tuple[User, Postback]:
    user = UserFactory.create()
    network.send(network.reward(user, amount=str(amount)))
    return user, Postback.objects.get(user=user, state=PostbackState.HELD)


@pytest.fixture
def network(db: None) -> Network:
    """Return a weak network."""
    return set_up("cpx-research", hold_hours=72)


@pytest.fixture
def amount() -> int:
    """Return an amount of this run."""
    return random.randint(10, 500)


@pytest.mark.parametrize("is_paused", [True, False])
def test_an_early_release_posts_once(network: Network, amount: int, is_paused: bool) -> None:
    user, held = _earn(network, amount)
    if is_paused:
        networks.switch(slug=network.slug, is_enabled=False)

    given = release_early(postback_id=held.pk)

    assert (given.state, given.entry) == (PostbackState.AVAILABLE, CreditEntry.objects.get())
    assert balance_of(user).available == amount
    assert release_due(now=timezone.now() + timedelta(days=4)) == 0
    with pytest.raises(EarningDecided):
        release_early(postback_id=held.pk)
    with pytest.raises(EarningDecided):
        forfeit(postback_id=held.pk)
    assert balance_of(user).available == amount


@pytest.mark.parametrize("decide", [release_early, forfeit])
def test_a_postback_without_a_user_cannot_be_decided(
    network: Network, amount: int, decide: Callable[..., object]
) -> None:
    _, held = _earn(network, amount)
    row = Postback.objects.filter(pk=held.pk)
    row.update(kind="TEST", state=PostbackState.INFO, user=None, available_at=None)
    before = row.values().get()

    with pytest.raises(EarningDecided):
        decide(postback_id=held.pk)

    assert row.values().get() == before
    assert not CreditEntry.objects.exists()


def test_an_early_release_can_still_be_reversed(network: Network, amount: int) -> None:
    user, held = _earn(network, amount)
    release_early(postback_id=held.pk)

    network.send(network.reward(user, external_id=held.external_id, amount=str(amount), is_reversal=True))

    assert balance_of(user).available == 0
    assert find_differences() == []


def test_a_forfeited_earning_is_never_posted(network: Network, amount: int) -> None:
    user, held = _earn(network, amount)

    forfeit(postback_id=held.pk)

    held.refresh_from_db()
    assert (held.state, held.refused_because, held.credits) == (PostbackState.REFUSED, "FORFEITED", amount)
    assert release_due(now=timezone.now() + timedelta(days=4)) == 0
    network.send(network.reward(user, external_id=held.external_id, amount=str(amount)))
    network.send(network.reward(user, external_id=held.external_id, amount=str(amount), is_reversal=True))
    assert not CreditEntry.objects.exists()
    assert Postback.objects.get(kind="REVERSAL").state == PostbackState.INFO
    with pytest.raises(EarningDecided, match="Refused"):
        release_early(postback_id=held.pk)


@pytest.mark.django_db
def test_an_early_release_leaves_out_reversed_credits() -> None:
    user, network = UserFactory.create(), set_up("bitlabs", hold_hours=24)
    reward = network.reward(user, amount="100")
    network.send(reward)
    network.send(network.reward(user, external_id=reward.external_id, amount="30", is_reversal=True))

    given = release_early(postback_id=Postback.objects.get(kind="CREDIT").pk)

    assert given.entry is not None
    assert given.entry.amount == balance_of(user).available == 70


def test_of_simultaneous_decisions_one_succeeds(transactional_db: None) -> None:
    network = set_up("cpx-research", hold_hours=72)
    user, held = _earn(network, 50)
    decide = [partial(choose, postback_id=held.pk) for choose in (release_early, forfeit) * 4]

    results = at_once(decide)

    assert sum(isinstance(result, EarningDecided) for result in results) == 7
    held.refresh_from_db()
    given = held.state == PostbackState.AVAILABLE
    assert balance_of(user).available == (50 if given else 0)
    assert CreditEntry.objects.count() == int(given)
