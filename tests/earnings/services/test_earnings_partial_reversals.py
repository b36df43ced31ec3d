"""BitLabs corrects what it paid by the amount that it reports: a part, or several parts until nothing is left."""

import random
from datetime import timedelta
from decimal import Decimal
from itertools import permutations

import pytest
from django.utils import timezone
from hypothesis import given, settings
from hypothesis import strategies as st

from credits.models import CreditEntry
from credits.queries import balance_of
from credits.services.reconciliation import find_differences
from devstack.ad_networks.signing import Reward
from earnings.models import Postback, PostbackState
from earnings.services.earnings import release_due
from rewards.models import BadgeTrack, ExperienceEntry
from rewards.services import experience
from tests.earnings.ad_networks import Network, random_id, set_up
from tests.factories import UserFactory
from tests.rewards.rows import experience_of
from users.models import User

pytestmark = pytest.mark.django_db


def _report(network: Network, user: User, survey: str, amount: str, *, is_reversal: bool = False) -> Reward:
    """Return a report of BitLabs; its corrections have ids of their own and name the offer's."""
    return network.reward(user, external_id=survey, amount=amount, is_reversal=is_reversal)


def _experience(user: User) -> int:
    return experience_of(user)[0]


@pytest.mark.parametrize("hold_hours", [0, 24])
def test_a_partial_reversal_takes_its_part_and_the_rest_stays(hold_hours: int) -> None:
    user, network = UserFactory.create(), set_up("bitlabs", rate=Decimal("1.5"), hold_hours=hold_hours)
    survey = f"o{random_id()}"
    network.send(_report(network, user, survey, "101"))
    assert balance_of(user).available == (0 if hold_hours else 151)

    network.send(_report(network, user, f"or{survey[1:]}", "40", is_reversal=True))
    release_due(now=timezone.now() + timedelta(hours=25))

    # floor(61 × 1.5) stays.
    assert balance_of(user).available == _experience(user) == 91
    rows = Postback.objects.order_by("pk").values_list("kind", "state", "credits", "takes_back")
    assert list(rows) == [
        ("CREDIT", PostbackState.AVAILABLE, 151, None),
        ("REVERSAL", PostbackState.REVERSED, 60, Decimal(40)),
    ]
    assert find_differences() == []


@pytest.mark.parametrize("order", permutations(["credit", "first", "second"]))
@pytest.mark.parametrize(("first", "second", "stays"), [("30", "20", 50), ("60", "40", 0), ("90", "90", 0)])
def test_partial_reversals_in_any_order_leave_the_same(
    order: tuple[str, ...], first: str, second: str, stays: int
) -> None:
    user, network = UserFactory.create(), set_up("bitlabs", hold_hours=random.choice([0, 24]))
    survey = f"o{random_id()}"
    rewards = {
        "credit": _report(network, user, survey, "100"),
        "first": _report(network, user, f"or{survey[1:]}", first, is_reversal=True),
        "second": _report(network, user, survey, second, is_reversal=True),
    }
    for which in [*order, *order]:
        network.send(rewards[which])
    release_due(now=timezone.now() + timedelta(hours=25))

    assert balance_of(user).available == _experience(user) == stays
    credit = Postback.objects.get(kind="CREDIT")
    assert credit.state == (PostbackState.AVAILABLE if stays else PostbackState.REVERSED)
    taken = sum(row.credits for row in Postback.objects.filter(kind="REVERSAL"))
    assert taken == credit.credits - stays
    assert find_differences() == []


@settings(max_examples=12)
@given(
    parts=st.lists(st.integers(1, 120), max_size=2),
    is_released_between=st.booleans(),
    base=st.integers(0, 40_000),
)
def test_partial_reversals_of_everything_leave_nothing(
    parts: list[int], is_released_between: bool, base: int
) -> None:
    user, network = UserFactory.create(), set_up("bitlabs", hold_hours=1, rate=Decimal("2.3"))
    if base:
        experience.gain(user=user, track=BadgeTrack.PERMANENT, base=base, key=random_id(), cause="test")
    before, survey = _experience(user), f"o{random_id()}"
    network.send(_report(network, user, survey, "100"))
    credit = Postback.objects.get(kind="CREDIT", external_id=survey)
    for external_id, part in zip([f"or{survey[1:]}", survey], parts, strict=False):
        network.send(_report(network, user, external_id, str(part), is_reversal=True))
        if is_released_between:
            release_due(now=timezone.now() + timedelta(hours=2))
    release_due(now=timezone.now() + timedelta(hours=2))

    remaining = max(0, 100 - sum(parts))
    bonus = 1 + credit.badge_bonus + credit.modifier_bonus
    assert balance_of(user).available == int(remaining * Decimal("2.3") * bonus)
    if not remaining:
        assert _experience(user) == before
    else:
        assert _experience(user) > before


def test_a_reconciliation_without_an_amount_takes_everything() -> None:
    user, network = UserFactory.create(), set_up("bitlabs")
    reward = network.reward(user, amount="250")
    network.send(reward)

    network.send(network.reward(user, external_id=reward.external_id, amount="0", is_reversal=True))

    assert balance_of(user).available == 0
    assert [entry.amount for entry in CreditEntry.objects.order_by("id")] == [250, -250]
    assert [gained.amount for gained in ExperienceEntry.objects.order_by("id")] == [250, -250]
