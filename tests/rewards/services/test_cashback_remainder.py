"""Fractions of a credit are not rounded away: they count with the next ones, whatever happens in between."""

import random
import secrets
from decimal import Decimal
from fractions import Fraction
from math import floor

import pytest
from django.db import transaction

from credits.models import CreditEntry, EntrySource
from credits.queries import balance_of
from credits.services import entries
from credits.services.reconciliation import find_differences
from rewards.models import CREDIT_PARTS, Badge, ModifierType, Progress
from rewards.services import experience, modifiers
from tests.credits.causes import causeless
from tests.credits.holding import place_hold
from tests.database import tamper
from tests.factories import UserFactory
from tests.rewards import settlements
from users.models import User

pytestmark = pytest.mark.django_db


@pytest.fixture
def user() -> User:
    user = UserFactory.create()
    experience.open_progress(user_ids=[user.pk])
    entries.grant(user=user, credits=10**7, source=EntrySource.SURVEYS, key=secrets.token_hex(8))
    return user


def give_back(fraction: str | Decimal) -> None:
    Badge.objects.update(credits_back_percent=Decimal(fraction))


def held(user: User) -> int:
    return place_hold(user=user, credits=5_000, key=secrets.token_hex(8)).hold.pk


def settle(costs: dict[int, int]) -> None:
    with transaction.atomic():
        settlements.settle(costs)


def reverse(*hold_ids: int) -> None:
    with transaction.atomic():
        settlements.reverse(hold_ids)


def returned_to(user: User) -> tuple[int, Fraction | int]:
    """The credits that came back in all, and the parts of a credit that are left over."""
    back = CreditEntry.objects.filter(account__user=user, key__contains="back:")
    remainder = Progress.objects.get(user=user).cashback_remainder
    return sum(back.values_list("amount", flat=True)), remainder


@pytest.mark.parametrize("together", [True, False])
def test_half_a_percent_of_small_calls_adds_up(user: User, together: bool) -> None:
    give_back("0.005")
    calls = [held(user) for _ in range(40)]
    for batch in [calls] if together else [[hold_id] for hold_id in calls]:
        settle(dict.fromkeys(batch, 105))
    assert returned_to(user) == (21, 0)
    whole = CreditEntry.objects.filter(account__user=user, source=EntrySource.CREDITS_BACK)
    # The first whole credit comes with the second call, and never more than one at a time.
    assert (whole.earliest("pk").key, set(whole.values_list("amount", flat=True))) == (
        f"back:hold:{calls[1]}",
        {1},
    )
    assert balance_of(user).balance == 10**7 - 40 * 105 + 21
    assert find_differences() == []


def test_another_fraction_or_an_ended_modifier_keeps_the_remainder(user: User) -> None:
    give_back("0.0099")
    settle({held(user): 100})
    assert returned_to(user) == (0, 9_900)
    give_back("0.0001")
    settle({held(user): 100})
    assert returned_to(user) == (1, 0)


@pytest.mark.parametrize("seed", random.sample(range(10**7, 10**9), 3))
def test_any_history_returns_the_whole_credits_of_the_exact_sum(user: User, seed: int) -> None:
    """Charges alone and together, reversals, and changes of the fraction, compared with exact fractions."""
    choose = random.Random(seed)
    other = UserFactory.create()
    experience.open_progress(user_ids=[other.pk])
    entries.grant(user=other, credits=10**7, source=EntrySource.SURVEYS, key=secrets.token_hex(8))
    owner_of: dict[int, User] = {}
    exact: dict[int, Fraction] = {}
    fraction = Decimal("0.005")
    give_back(fraction)
    for _ in range(40):
        match choose.choice(["settle", "settle", "reverse", "settle again", "change"]):
            case "change":
                fraction = choose.choice([Decimal(0), Decimal(1), Decimal(choose.randrange(10_001)) / 10_000])
                give_back(fraction)
            case "reverse" if exact:
                undone = choose.sample(sorted(exact), k=choose.randint(1, min(3, len(exact))))
                reverse(*undone)
                for hold_id in undone:
                    del exact[hold_id]
            case chosen:
                batch = [hold_id for hold_id in owner_of if hold_id not in exact]
                if chosen == "settle":
                    owners = choose.choices([user, other], k=choose.choice([1, 1, 4]))
                    fresh = {held(owner): owner for owner in owners}
                    owner_of |= fresh
                    batch = list(fresh)
                costs = {hold_id: choose.randint(0, 400) for hold_id in batch}
                settle(costs)
                exact |= {hold_id: cost * Fraction(fraction) for hold_id, cost in costs.items() if cost}
                for hold_id in [hold_id for hold_id, cost in costs.items() if not cost]:
                    del owner_of[hold_id]
        for owner in (user, other):
            due = sum((part for hold_id, part in exact.items() if owner_of[hold_id] == owner), Fraction(0))
            assert returned_to(owner) == (floor(due), (due - floor(due)) * CREDIT_PARTS)
    assert find_differences() == []


def test_a_modifier_counts_to_the_fourth_decimal(user: User) -> None:
    give_back("0.0001")
    modifiers.grant(
        user=user,
        modifier_type=ModifierType.BONUS_CREDITS_BACK,
        value=Decimal("0.0002"),
        minutes=5,
        key=secrets.token_hex(8),
        reason="",
    )
    settle({held(user): 1})
    assert returned_to(user) == (0, 3)


def test_the_comparison_finds_manual_changes(user: User) -> None:
    give_back("0.015")
    settle({held(user): 105})
    [progress] = Progress.objects.filter(user=user)
    Progress.objects.filter(pk=progress.pk).update(cashback_remainder=3)
    assert [(finding.expected, finding.actual) for finding in find_differences()] == [(5_750, 3)]
    Progress.objects.filter(pk=progress.pk).update(cashback_remainder=5_750)
    tamper("UPDATE rewards_cashback SET credits = 2, amount = amount + 10000")
    [finding] = causeless(EntrySource.CREDITS_BACK)
    assert (finding["have"], finding["wanted"].split()[:2]) == ("CREDITS_BACK 1", ["CREDITS_BACK", "2"])
