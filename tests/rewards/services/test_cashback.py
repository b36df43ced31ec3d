"""Spending earns experience, and a part of the cost comes back as an entry of its own."""

import random
import secrets
from decimal import Decimal

import pytest

from credits.errors import HoldReleased
from credits.models import CreditEntry, EntrySource
from credits.queries import balance_of
from credits.services import holds
from credits.services.reconciliation import find_differences
from rewards.models import Badge, BadgeTrack, ExperienceEntry, ModifierType
from rewards.services import modifiers
from tests.credits.holding import place_hold
from tests.credits.rows import everything
from tests.rewards import settlements
from tests.rewards.rows import experience_of
from users.models import User

pytestmark = pytest.mark.django_db


def held(user: User, credits: int) -> int:
    return place_hold(user=user, credits=credits, key=secrets.token_hex(8)).hold.pk


def give_back(fraction: str) -> None:
    Badge.objects.filter(track=BadgeTrack.PERMANENT).update(credits_back_percent=Decimal(fraction))


def settle(user: User, hold_id: int, cost: int) -> CreditEntry:
    settlements.settle({hold_id: cost})
    return CreditEntry.objects.get(hold=hold_id)


def returned(user: User) -> list[int]:
    entries = CreditEntry.objects.filter(account__user=user, source=EntrySource.CREDITS_BACK)
    return list(entries.values_list("amount", flat=True))


def test_the_lowest_badge_grants_experience_and_no_cashback(user: User, funds: int) -> None:
    cost = random.randint(1, 900)
    entry = settle(user, held(user, cost + 5), cost)
    assert (entry.amount, entry.source) == (-cost, EntrySource.RELAY_TRANSACTION)
    assert experience_of(user)[0] == cost
    assert returned(user) == []
    assert balance_of(user) == (funds - cost, 0, funds - cost)


def test_badge_and_modifier_determine_the_cashback_rounded_down(user: User, funds: int) -> None:
    give_back("0.03")
    modifiers.grant(
        user=user,
        modifier_type=ModifierType.BONUS_CREDITS_BACK,
        value=Decimal("0.0450"),
        minutes=5,
        key=secrets.token_hex(8),
        reason="",
    )
    cost = random.randint(100, 900)
    settle(user, held(user, cost), cost)
    assert returned(user) == [cost * 75 // 1000]
    assert balance_of(user).balance == funds - cost + cost * 75 // 1000
    assert find_differences() == []


def test_cashback_never_exceeds_the_cost(user: User, funds: int) -> None:
    give_back("1")
    modifiers.grant(
        user=user,
        modifier_type=ModifierType.BONUS_CREDITS_BACK,
        value=Decimal(1),
        minutes=5,
        key=secrets.token_hex(8),
        reason="",
    )
    settle(user, held(user, 40), 40)
    assert returned(user) == [40]
    assert balance_of(user).balance == funds


def test_cashback_below_one_credit_is_not_paid(user: User) -> None:
    give_back("0.09")
    settle(user, held(user, 11), 11)
    assert returned(user) == []


def test_settled_again_everything_stays(user: User) -> None:
    give_back("0.5")
    hold_id = held(user, 100)
    first = settle(user, hold_id, 80)
    before = everything(), list(ExperienceEntry.objects.values())
    assert settle(user, hold_id, 90) == first
    assert (everything(), list(ExperienceEntry.objects.values())) == before


@pytest.mark.parametrize(("then", "later"), [("0", "0.5"), ("0.5", "0.7"), ("0.5", "0")])
def test_settled_again_under_other_benefits_everything_stays(user: User, then: str, later: str) -> None:
    give_back(then)
    hold_id = held(user, 100)
    first = settle(user, hold_id, 80)
    before = everything(), list(ExperienceEntry.objects.values())
    give_back(later)
    assert settle(user, hold_id, 80) == first
    assert (everything(), list(ExperienceEntry.objects.values())) == before


def test_a_released_hold_earns_nothing(user: User) -> None:
    give_back("0.5")
    hold_id = held(user, 100)
    holds.release(hold_id=hold_id)
    before = everything()
    with pytest.raises(HoldReleased):
        settle(user, hold_id, 80)
    assert everything() == before
    assert not ExperienceEntry.objects.exists()
