"""Many holds are settled in as many statements as one, and to the same end as one after the other."""

import random
import secrets
from collections import defaultdict
from collections.abc import Sequence
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from functools import partial
from math import floor

import pytest
from django.db import DatabaseError, transaction
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from credits.errors import HoldReleased
from credits.models import CreditEntry, CreditHold, EntrySource, HoldStatus
from credits.queries import balance_of
from credits.services import entries as credits_entries
from credits.services import holds as credits_holds
from credits.services.reconciliation import find_differences
from rewards import queries
from rewards.models import Badge, BadgeTrack, ExperienceEntry, ModifierType, Progress
from rewards.services import experience, modifiers
from tests.credits.allowances import set_allowance
from tests.credits.holding import capture, place_hold
from tests.credits.rows import everything
from tests.factories import UserFactory
from tests.rewards import settlements
from tests.rewards.rows import experience_of
from tests.threads import at_once, waits_for_this_transaction
from users.models import User

pytestmark = pytest.mark.django_db
FUNDS = 10**7


@pytest.fixture(autouse=True)
def _badges() -> None:
    """Badges that differ in all that matters here, with the first steps within reach."""
    for track in BadgeTrack:
        for step, badge in enumerate(Badge.objects.filter(track=track)):
            badge.exp_growth_rate = Decimal(random.randint(5_000, 25_000)) / 10_000
            badge.credits_back_percent = Decimal(step * random.randint(100, 900)) / 10_000
            badge.save()


def person(*, subscribes: bool = False) -> User:
    user = UserFactory.create()
    experience.open_progress(user_ids=[user.pk])
    credits_entries.grant(user=user, credits=FUNDS, source=EntrySource.SURVEYS, key=secrets.token_hex(8))
    if subscribes:
        now = timezone.now()
        set_allowance(
            user=user,
            credits=1,
            starts_at=now - timedelta(days=1),
            ends_at=now + timedelta(days=1),
            renews=True,
        )
        experience.gain(
            user=user,
            track=BadgeTrack.SUBSCRIBER,
            base=10_000,
            key=secrets.token_hex(8),
            cause="TEST",
        )
    return user


def held(user: User, credits: int) -> int:
    return place_hold(user=user, credits=credits, key=secrets.token_hex(8)).hold.pk


def settle(costs: dict[int, int]) -> None:
    with transaction.atomic():
        settlements.settle(costs)


def settle_by_hand(user: User, hold_id: int, cost: int, dues: dict[int, Fraction]) -> None:
    """Do what settling means, step by step, through the services for single moves."""
    entry = capture(hold_id=hold_id, credits=cost)
    if entry is None:
        return
    paid, gained = -entry.amount, f"spent:{entry.key}"
    experience.gain(user=user, track=BadgeTrack.PERMANENT, base=paid, key=gained, cause=entry.source)
    fraction = queries.current_rewards(user=user, now=timezone.now()).benefits.cashback_fraction
    dues[user.pk] += paid * Fraction(fraction)
    if back := floor(dues[user.pk]):
        dues[user.pk] -= back
        credits_entries.grant(
            user=user, credits=back, source=EntrySource.CREDITS_BACK, key=f"back:{entry.key}"
        )


def outcome(hold_id: int) -> tuple[object, ...]:
    """What became of a hold, of any user: its state, the charge, the experience, what came back."""
    hold = CreditHold.objects.get(pk=hold_id)
    entries = CreditEntry.objects.filter(key__in=[f"hold:{hold_id}", f"back:hold:{hold_id}"])
    grown = ExperienceEntry.objects.filter(key=f"spent:hold:{hold_id}")
    return (
        hold.status,
        hold.captured_amount,
        sorted(entries.values_list("source", "amount")),
        list(grown.values_list("track", "base", "amount", "total_after", "cause")),
    )


def holds_of(people: Sequence[User], amounts: Sequence[Sequence[int]]) -> list[list[int]]:
    return [[held(user, amount) for amount in wanted] for user, wanted in zip(people, amounts, strict=True)]


def test_holds_settled_together_end_as_if_settled_one_after_the_other() -> None:
    costs = [[random.choice([0, 1, 7, random.randint(1, 4_000)]) for _ in range(12)] for _ in range(4)]
    amounts = [[max(1, cost + random.randint(-9, 9)) for cost in row] for row in costs]
    people, twins = ([person(subscribes=bool(n % 2)) for n in range(4)] for _ in range(2))
    for user in (people[0], twins[0]):
        modifiers.grant(
            user=user,
            modifier_type=ModifierType.BONUS_CREDITS_BACK,
            value=Decimal("0.25"),
            minutes=5,
            key=secrets.token_hex(8),
            reason="",
        )
    together, single = holds_of(people, amounts), holds_of(twins, amounts)

    settle(
        {
            pk: cost
            for ids, wanted in zip(together, costs, strict=True)
            for pk, cost in zip(ids, wanted, strict=True)
        }
    )
    dues: dict[int, Fraction] = defaultdict(Fraction)
    for twin, ids, wanted in zip(twins, single, costs, strict=True):
        for pk, cost in zip(ids, wanted, strict=True):
            settle_by_hand(twin, pk, cost, dues)

    for ids, others in zip(together, single, strict=True):
        assert [outcome(pk) for pk in ids] == [outcome(pk) for pk in others]
    for user, twin in zip(people, twins, strict=True):
        assert balance_of(user) == balance_of(twin)
    assert find_differences() == []


@pytest.mark.parametrize("count", [1, 20, 200])
def test_settling_costs_four_statements_for_any_number(
    django_assert_num_queries: DjangoAssertNumQueries, count: int
) -> None:
    Badge.objects.update(credits_back_percent=Decimal("0.5"))
    people = [person() for _ in range(min(count, 7))]
    costs = {held(people[number % len(people)], 20): 10 + number for number in range(count)}
    with django_assert_num_queries(4):
        settlements.settle(costs)
    assert CreditHold.objects.filter(status=HoldStatus.CAPTURED).count() == count
    assert CreditEntry.objects.filter(source=EntrySource.CREDITS_BACK).count() == count
    assert find_differences() == []


def test_a_charge_never_exceeds_the_hold_even_if_it_was_raised() -> None:
    user = person()
    low, high = held(user, 100), held(user, 100)
    assert credits_holds.raise_hold(hold_id=high, credits=150, badge_debt=0)
    settle({low: 130, high: 130})
    charged = CreditHold.objects.order_by("pk").values_list("captured_amount", flat=True)
    assert list(charged) == [100, 130]


def test_holds_captured_before_earn_nothing_and_the_others_are_settled() -> None:
    user = person()
    first, second = held(user, 50), held(user, 50)
    settle({first: 40})
    before = outcome(first)
    settle({first: 45, second: 30})
    assert outcome(first) == before
    assert CreditHold.objects.get(pk=second).captured_amount == 30
    assert find_differences() == []


def test_one_that_was_released_before_undoes_all() -> None:
    user, other = person(), person()
    good, bad = held(user, 50), held(other, 50)
    credits_holds.release(hold_id=bad)
    before = everything()
    with pytest.raises(HoldReleased):
        settle({good: 40, bad: 40})
    assert everything() == before
    # A second release is not a contradiction.
    settle({good: 40, bad: 0})
    assert CreditHold.objects.get(pk=good).captured_amount == 40


@pytest.mark.parametrize("taken", ["spent", "back"])
def test_a_reward_with_a_used_key_rolls_back_everything(taken: str) -> None:
    Badge.objects.update(credits_back_percent=Decimal("0.5"))
    user = person()
    good, bad = held(user, 50), held(user, 50)
    if taken == "spent":
        key = f"spent:hold:{bad}"
        experience.gain(user=user, track=BadgeTrack.PERMANENT, base=1, key=key, cause="TEST")
    else:
        credits_entries.grant(user=user, credits=1, source=EntrySource.CREDITS_BACK, key=f"back:hold:{bad}")
    before = everything()
    with pytest.raises(DatabaseError):
        settle({good: 40, bad: 40})
    assert everything() == before


def test_users_without_progress_gain_as_others_do() -> None:
    users = [person() for _ in range(3)]
    Progress.objects.filter(user__in=users[1:]).delete()
    settle({held(user, 50): 40 for user in users})
    assert [experience_of(user)[0] > 0 for user in users] == [True] * 3
    assert ExperienceEntry.objects.count() == 3


def test_a_negative_cost_settles_nothing() -> None:
    user = person()
    good, bad = held(user, 50), held(user, 50)
    before = everything()
    with pytest.raises(ValueError, match="negative"):
        settle({good: 40, bad: -1})
    assert everything() == before


def test_nothing_to_settle_is_nothing() -> None:
    before = everything()
    settle({})
    assert everything() == before


def test_workers_that_settle_the_same_holds_in_any_order_settle_each_once(transactional_db: None) -> None:
    Badge.objects.update(credits_back_percent=Decimal("0.5"))
    people = [person() for _ in range(5)]
    holds = [held(random.choice(people), 20) for _ in range(40)]
    batches = [dict.fromkeys(random.sample(holds, 25), 10) for _ in range(8)] + [dict.fromkeys(holds, 10)]
    at_once(
        [partial(settlements.settle, batch) for batch in batches],
        in_transaction=True,
    )
    assert CreditHold.objects.filter(status=HoldStatus.CAPTURED, captured_amount=10).count() == 40
    assert CreditEntry.objects.filter(source=EntrySource.CREDITS_BACK, amount=5).count() == 40
    assert ExperienceEntry.objects.count() == 40
    assert find_differences() == []


def test_a_settlement_that_waited_for_a_raise_drops_the_raised_amount(transactional_db: None) -> None:
    user = person()
    raised, other = held(user, 100), held(user, 100)
    with waits_for_this_transaction(partial(settle, {raised: 180, other: 60}), in_transaction=True) as waited:
        credits_holds.raise_hold(hold_id=raised, credits=250, badge_debt=0)
    assert waited.result() is None
    assert balance_of(user).held == 0
    assert CreditHold.objects.get(pk=raised).captured_amount == 180
    assert find_differences() == []
