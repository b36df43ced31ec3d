"""A credit, its reversal and their repeats leave the same account in any order."""

import random
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from credits.models import CreditEntry
from credits.queries import account_of, balance_of
from credits.services import entries
from credits.services.reconciliation import find_differences
from devstack.ad_networks.signing import Reward
from earnings.models import Postback, PostbackState
from earnings.networks.base import PostbackResponse
from gateway.common.errors import DomainError
from rewards.models import ExperienceEntry
from tests.earnings.ad_networks import Network, random_id, set_up
from tests.factories import UserFactory
from tests.rewards.rows import experience_of
from tests.threads import at_once

REVERSING = ["levelplay", "tapjoy", "adgem", "ayet-studios", "bitlabs", "theoremreach"]
# Which earnings (0 to 2) are reported, and whether as reversals, any number of times in any order.
_SEQUENCES = st.lists(st.tuples(st.integers(0, 2), st.booleans()), max_size=12)


@pytest.mark.django_db
@settings(max_examples=15)
@given(sequence=_SEQUENCES, slug=st.sampled_from(REVERSING), hold_hours=st.sampled_from([0, 0, 24]))
def test_after_any_sequence_only_unreversed_credits_remain(
    sequence: list[tuple[int, bool]], slug: str, hold_hours: int
) -> None:
    user, network = UserFactory.create(), set_up(slug, hold_hours=hold_hours)
    ids, amounts = [random_id() for _ in range(3)], [random.randint(1, 300) for _ in range(3)]
    for which, is_reversal in sequence:
        reward = network.reward(
            user, external_id=ids[which], amount=str(amounts[which]), is_reversal=is_reversal
        )
        assert network.send(reward).status == 200

    lasting = {which for which, is_reversal in sequence if not is_reversal} - {
        which for which, is_reversal in sequence if is_reversal
    }
    expected = 0 if hold_hours else sum(amounts[which] for which in lasting)
    assert balance_of(user).available == expected
    assert experience_of(user)[0] == expected
    assert find_differences() == []


@pytest.mark.django_db
@pytest.mark.parametrize("slug", REVERSING)
def test_a_reversal_takes_back_exactly_the_credited_amount(slug: str) -> None:
    user, network = UserFactory.create(), set_up(slug)
    reward = network.reward(user, amount="250")
    network.send(reward)
    # Meanwhile everything that the credits were worked out from has changed.
    network.row.rate = 9
    network.row.save()

    network.send(network.reward(user, external_id=reward.external_id, amount="250", is_reversal=True))

    assert balance_of(user).available == 0
    assert [entry.amount for entry in CreditEntry.objects.order_by("id")] == [250, -250]
    assert [entry.source for entry in CreditEntry.objects.order_by("id")][1] == "EARNING_REVERSAL"
    assert [gained.amount for gained in ExperienceEntry.objects.order_by("id")] == [250, -250]
    assert set(Postback.objects.values_list("state", "credits")) == {(PostbackState.REVERSED, 250)}


@pytest.mark.django_db
def test_a_reversal_before_its_credit_waits_and_the_credit_nets_to_zero() -> None:
    user, network = UserFactory.create(), set_up("ayet-studios")
    reward = network.reward(user)
    back = network.reward(user, external_id=reward.external_id, amount=reward.amount, is_reversal=True)
    network.send(back)
    assert Postback.objects.get().state == PostbackState.RECEIVED

    network.send(reward)

    assert balance_of(user).available == 0
    assert not CreditEntry.objects.exists()
    assert set(Postback.objects.values_list("kind", "state")) == {
        ("CREDIT", PostbackState.REVERSED),
        ("REVERSAL", PostbackState.REVERSED),
    }


@pytest.mark.django_db
def test_a_reversal_of_spent_credits_leaves_a_debt() -> None:
    user, network = UserFactory.create(), set_up("tapjoy")
    reward = network.reward(user, amount="100")
    network.send(reward)
    entries.adjust(user=user, credits=-80, key=random_id(), actor=None, reason="spent")

    network.send(network.reward(user, external_id=reward.external_id, amount="100", is_reversal=True))

    assert balance_of(user).available == -80


@pytest.mark.django_db
def test_another_users_credit_is_not_reversed() -> None:
    user, other, network = UserFactory.create(), UserFactory.create(), set_up("tapjoy")
    reward = network.reward(user, amount="100")
    network.send(reward)

    network.send(network.reward(other, external_id=reward.external_id, amount="100", is_reversal=True))

    assert balance_of(user).available == 100
    assert balance_of(other).available == 0


def test_50_simultaneous_repeats_credit_once(transactional_db: None) -> None:
    user, network = UserFactory.create(), set_up("tapjoy")
    reward = network.reward(user)

    results = _at_once(network, [reward] * 50)

    assert results == [PostbackResponse(200, "OK")] * 50
    assert (Postback.objects.count(), CreditEntry.objects.count()) == (1, 1)
    assert balance_of(user).available == int(reward.amount)


def test_simultaneous_credits_and_reversals_leave_nothing(transactional_db: None) -> None:
    user, network = UserFactory.create(), set_up("tapjoy")
    for _ in range(8):
        reward = network.reward(user)
        reversal = network.reward(
            user, external_id=reward.external_id, amount=reward.amount, is_reversal=True
        )
        assert _at_once(network, [reward, reversal] * 4) == [PostbackResponse(200, "OK")] * 8

    assert balance_of(user).available == 0
    assert Postback.objects.count() == 16
    assert not Postback.objects.exclude(state=PostbackState.REVERSED).exists()
    assert find_differences() == []


def _at_once(network: Network, rewards: list[Reward]) -> list[PostbackResponse | DomainError]:
    return at_once([partial(network.send, reward) for reward in rewards])


@pytest.mark.django_db
def test_a_second_reversal_under_another_id_takes_nothing_more() -> None:
    """BitLabs' reconciled offers are `or…` of the offer `o…`, and may come under the offer's own id as well."""
    user, network = UserFactory.create(), set_up("bitlabs")
    offer = network.reward(user, external_id=f"o{random_id()}", amount="70")
    network.send(offer)

    for external_id in (f"or{offer.external_id[1:]}", offer.external_id):
        network.send(network.reward(user, external_id=external_id, amount="70", is_reversal=True))

    assert [entry.amount for entry in CreditEntry.objects.order_by("id")] == [70, -70]
    reversals = Postback.objects.filter(kind="REVERSAL").order_by("pk").values_list("state", "credits")
    assert list(reversals) == [(PostbackState.REVERSED, 70), (PostbackState.INFO, 0)]


@pytest.mark.django_db
def test_a_reversal_ends_an_earning_held_beyond_a_cap() -> None:
    user, network = UserFactory.create(), set_up("tapjoy", per_event_cap=10)
    reward = network.reward(user, amount="11")
    network.send(reward)

    network.send(network.reward(user, external_id=reward.external_id, amount="11", is_reversal=True))

    assert dict(Postback.objects.values_list("kind", "state")) == {
        "CREDIT": PostbackState.REVERSED,
        "REVERSAL": PostbackState.REVERSED,
    }
    assert not CreditEntry.objects.exists()


@pytest.mark.django_db
@pytest.mark.parametrize("ending", [":reversal", ":reversed", "-reversed"])
def test_an_id_that_looks_like_a_reversal_is_an_earning_of_its_own(ending: str) -> None:
    user, network = UserFactory.create(), set_up("adgem")
    first = network.reward(user, amount="250")
    for reward in (first, network.reward(user, external_id=first.external_id + ending, amount="40")):
        assert network.send(reward).status == 200

    reversal = network.reward(user, external_id=first.external_id, amount="250", is_reversal=True)
    assert network.send(reversal).status == 200

    assert (account_of(user).balance, experience_of(user)[0]) == (40, 40)
    assert find_differences() == []
