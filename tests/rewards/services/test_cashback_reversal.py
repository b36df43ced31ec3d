"""Undoing a settlement: what was charged, gained and returned is taken back by new entries."""

import secrets
from decimal import Decimal

import pytest
from django.db import transaction

from credits.models import CreditEntry, CreditHold, EntrySource
from credits.queries import balance_of
from credits.services import entries
from credits.services import holds as credits_holds
from credits.services.reconciliation import find_differences
from rewards.models import Badge, ExperienceEntry
from rewards.services import experience
from tests.credits.holding import place_hold
from tests.credits.rows import everything
from tests.factories import UserFactory
from tests.rewards import settlements
from tests.rewards.rows import experience_of
from users.models import User

pytestmark = pytest.mark.django_db
FUNDS = 1_000


@pytest.fixture(autouse=True)
def _badges() -> None:
    Badge.objects.update(credits_back_percent=Decimal("0.1"), exp_growth_rate=Decimal("1.5"))


@pytest.fixture
def user() -> User:
    user = UserFactory.create()
    experience.open_progress(user_ids=[user.pk])
    entries.grant(user=user, credits=FUNDS, source=EntrySource.SURVEYS, key=secrets.token_hex(8))
    return user


def held(user: User, credits: int) -> int:
    return place_hold(user=user, credits=credits, key=secrets.token_hex(8)).hold.pk


def settle(**costs: int) -> None:
    with transaction.atomic():
        settlements.settle({int(name[1:]): cost for name, cost in costs.items()})


def reverse(*hold_ids: int) -> None:
    with transaction.atomic():
        settlements.reverse(hold_ids)


def test_a_reversal_refunds_the_charge_takes_back_rewards_and_restores_the_hold(user: User) -> None:
    hold_id = held(user, 300)
    settle(**{f"h{hold_id}": 200})
    assert (balance_of(user).balance, experience_of(user)[0]) == (FUNDS - 200 + 20, 300)

    reverse(hold_id)
    assert balance_of(user) == (FUNDS, 300, FUNDS - 300)
    assert experience_of(user)[0] == 0
    hold = CreditHold.objects.get(pk=hold_id)
    assert (hold.status, hold.entry, hold.captured_amount, hold.closed_at) == ("HELD", None, None, None)
    added = CreditEntry.objects.filter(source=EntrySource.RELAY_REVERSAL).order_by("pk")
    assert list(added.values_list("amount", "key")) == [
        (200, f"reversal:hold:{hold_id}"),
        (-20, f"reversal:back:hold:{hold_id}"),
    ]
    taken = ExperienceEntry.objects.get(key=f"reversal:spent:hold:{hold_id}")
    assert (taken.amount, taken.cause) == (-300, "RELAY_REVERSAL")
    assert find_differences() == []


def test_a_second_settlement_has_its_own_keys_and_can_be_undone_again(user: User) -> None:
    hold_id = held(user, 300)
    for cost in (200, 100, 50):
        settle(**{f"h{hold_id}": cost})
        reverse(hold_id)
    settle(**{f"h{hold_id}": 30})
    assert balance_of(user) == (FUNDS - 30 + 3, 0, FUNDS - 27)
    assert experience_of(user)[0] == 45
    keys = CreditEntry.objects.filter(source=EntrySource.RELAY_TRANSACTION).order_by("pk")
    assert list(keys.values_list("key", flat=True)) == [
        f"hold:{hold_id}",
        *(f"hold:{hold_id}:{number}" for number in (1, 2, 3)),
    ]
    assert find_differences() == []


def test_an_open_hold_stays_as_it_is(user: User) -> None:
    hold_id = held(user, 300)
    settle(**{f"h{hold_id}": 200})
    reverse(hold_id)
    before = everything()
    reverse(hold_id, hold_id)
    assert everything() == before


def test_a_released_hold_is_held_again_without_an_entry(user: User) -> None:
    hold_id = held(user, 300)
    credits_holds.release(hold_id=hold_id)
    reverse(hold_id)
    assert balance_of(user) == (FUNDS, 300, FUNDS - 300)
    assert CreditEntry.objects.filter(account__user=user).count() == 1
    assert find_differences() == []


def test_the_hold_is_restored_even_into_debt(user: User) -> None:
    hold_id = held(user, 900)
    settle(**{f"h{hold_id}": 10})
    other = held(user, 950)
    reverse(hold_id)
    assert balance_of(user).available == FUNDS - 900 - 950
    assert CreditHold.objects.filter(status="HELD").count() == 2
    reverse(other)
    assert find_differences() == []


def test_many_holds_of_many_users_are_undone_together(user: User) -> None:
    other = UserFactory.create()
    experience.open_progress(user_ids=[other.pk])
    entries.grant(user=other, credits=FUNDS, source=EntrySource.SURVEYS, key=secrets.token_hex(8))
    hold_ids = [held(owner, 100) for owner in (user, other, user, other)]
    settle(**{f"h{hold_id}": 40 + place for place, hold_id in enumerate(hold_ids)})
    reverse(*hold_ids)
    for owner in (user, other):
        assert balance_of(owner) == (FUNDS, 200, FUNDS - 200)
        assert experience_of(owner)[0] == 0
    assert find_differences() == []
