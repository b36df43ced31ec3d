"""Holding credits."""

import random
import secrets
from functools import partial

import pytest
from django.db import transaction

from credits.errors import InsufficientCredits, KeyConflict
from credits.models import CreditHold, EntrySource, HoldStatus
from credits.queries import balance_of
from credits.services import entries
from credits.services import holds as credits_holds
from credits.services.reconciliation import find_differences
from tests.credits.holding import HoldResult, place_hold
from tests.credits.rows import everything, query
from tests.factories import UserFactory
from tests.threads import at_once, waits_for_this_transaction
from users.models import User


def test_held_credits_are_no_longer_available(user: User, funds: int, key: str) -> None:
    amount = random.randint(1, funds)
    result = place_hold(user=user, credits=amount, key=key)

    assert (result.created, result.balance) == (True, funds)
    assert (result.hold.amount, result.hold.status) == (amount, HoldStatus.HELD)
    assert result.hold == CreditHold.objects.get(key=key)
    assert balance_of(user) == (funds, amount, funds - amount)


def test_a_hold_leaves_all_other_accounts_alone(user: User, funds: int, key: str) -> None:
    others = [UserFactory.create() for _ in range(2)]
    for other in others:
        entries.grant(user=other, credits=10 * funds, source=EntrySource.SURVEYS, key=secrets.token_hex(16))
    # Before and after this one, in the order of rows.
    for holder in (others[0], user):
        balances = [balance_of(other) for other in (*others, user)]
        held = place_hold(user=holder, credits=funds, key=secrets.token_hex(16)).hold
        assert held.account.user_id == holder.pk
        moved = [
            other for other, was in zip((*others, user), balances, strict=True) if balance_of(other) != was
        ]
        assert moved == [holder]
    with pytest.raises(InsufficientCredits):
        place_hold(user=user, credits=1, key=key)
    assert CreditHold.objects.count() == 2


def test_a_hold_may_use_the_debt_limit_to_the_last_credit(user: User, funds: int, key: str) -> None:
    before = everything()
    with pytest.raises(InsufficientCredits) as refusal:
        place_hold(user=user, credits=funds + 51, key=key, debt_limit=50)
    assert refusal.value.status == 402
    assert refusal.value.members == {"required": funds + 51, "available": funds, "debtLimit": 50}
    assert everything() == before

    place_hold(user=user, credits=funds + 50, key=key, debt_limit=50)
    assert balance_of(user).available == -50


def test_held_credits_cannot_be_held_again(user: User, funds: int, key: str) -> None:
    place_hold(user=user, credits=funds, key=key)
    before = everything()
    with pytest.raises(InsufficientCredits) as refusal:
        place_hold(user=user, credits=1, key=secrets.token_hex(16))
    assert refusal.value.members["available"] == 0
    assert everything() == before


def test_a_refused_hold_leaves_the_callers_transaction_usable(user: User, funds: int, key: str) -> None:
    with transaction.atomic():
        with pytest.raises(InsufficientCredits):
            place_hold(user=user, credits=funds + 1, key=key)
        assert place_hold(user=user, credits=funds, key=key).created


def test_a_hold_is_rolled_back_with_the_callers_transaction(user: User, key: str) -> None:
    before = everything()
    with transaction.atomic():
        place_hold(user=user, credits=1, key=key)
        transaction.set_rollback(True)
    assert everything() == before


@pytest.mark.django_db
def test_a_user_without_kept_credits_may_not_hold_on_debt(key: str) -> None:
    user = UserFactory.create()
    with pytest.raises(InsufficientCredits) as refusal:
        place_hold(user=user, credits=1, key=key, debt_limit=10)
    assert refusal.value.members["available"] == 0
    assert CreditHold.objects.count() == 0
    entries.grant(user=user, credits=10, source=EntrySource.CHECK_IN, key=secrets.token_hex(8))
    with pytest.raises(InsufficientCredits):
        place_hold(user=user, credits=11, key=key, debt_limit=10)
    assert place_hold(user=user, credits=10, key=key, debt_limit=10).balance == 10


def test_a_repeated_key_returns_the_first_hold_even_when_the_user_is_broke(
    user: User, funds: int, key: str
) -> None:
    first = place_hold(user=user, credits=funds, key=key)
    entries.adjust(user=user, credits=-funds, key=secrets.token_hex(16), actor=None, reason="clawed back")
    before = everything()
    # The price of the same thing has moved since.
    again = place_hold(user=user, credits=funds + 1, key=key)
    assert again == HoldResult(first.hold, created=False, balance=0)
    assert everything() == before


def test_a_repeated_key_returns_the_first_hold_when_it_is_closed(user: User, key: str) -> None:
    first = place_hold(user=user, credits=5, key=key)
    credits_holds.release(hold_id=first.hold.pk)
    again = place_hold(user=user, credits=5, key=key)
    assert (again.hold.pk, again.hold.status, again.created) == (first.hold.pk, HoldStatus.RELEASED, False)
    assert balance_of(user).held == 0


def test_the_key_of_another_users_hold_is_a_conflict(user: User, key: str) -> None:
    place_hold(user=user, credits=5, key=key)
    other = UserFactory.create()
    entries.grant(user=other, credits=5, source=EntrySource.SURVEYS, key=secrets.token_hex(16))
    before = everything()
    with pytest.raises(KeyConflict):
        place_hold(user=other, credits=5, key=key)
    assert everything() == before


def test_a_hold_is_two_statements(user: User, key: str, django_assert_num_queries: type) -> None:
    with django_assert_num_queries(2):
        place_hold(user=user, credits=1, key=key)


def test_40_concurrent_holds_take_exactly_the_available_credits(transactional_db: None, key: str) -> None:
    user = UserFactory.create()
    price, debt, affordable = random.randint(2, 10**6), random.randint(0, 50), random.randint(5, 30)
    change = random.randint(0, price - 1)
    worth = price * affordable + change - debt
    entries.grant(user=user, credits=worth, source=EntrySource.SURVEYS, key=key)
    holds = at_once(
        [partial(place_hold, user=user, credits=price, key=f"{key}:{n}", debt_limit=debt) for n in range(40)],
        in_transaction=True,
    )
    assert sum(isinstance(result, HoldResult) for result in holds) == affordable
    assert sum(isinstance(result, InsufficientCredits) for result in holds) == 40 - affordable
    assert query("SELECT count(*) FROM credits_hold") == [(affordable,)]
    assert balance_of(user) == (worth, affordable * price, change - debt)
    assert find_differences() == []


def test_16_concurrent_holds_with_one_key_hold_once(
    transactional_db: None, user: User, funds: int, key: str
) -> None:
    results = at_once([partial(place_hold, user=user, credits=funds, key=key)] * 16, in_transaction=True)
    held = [result for result in results if isinstance(result, HoldResult)]
    assert len(held) == 16
    assert sum(result.created for result in held) == 1
    assert len({result.hold.pk for result in held}) == 1
    assert balance_of(user) == (funds, funds, 0)


def test_a_hold_that_waited_sees_what_the_one_before_it_took(
    transactional_db: None, user: User, funds: int, key: str
) -> None:
    with waits_for_this_transaction(
        partial(place_hold, user=user, credits=1, key=key), in_transaction=True
    ) as waited:
        place_hold(user=user, credits=funds, key=secrets.token_hex(16))
    assert isinstance(waited.result(), InsufficientCredits)
    assert query("SELECT count(*) FROM credits_hold") == [(1,)]
    assert find_differences() == []


def test_a_hold_waits_for_the_same_key_and_returns_it(
    transactional_db: None, user: User, funds: int, key: str
) -> None:
    with waits_for_this_transaction(
        partial(place_hold, user=user, credits=funds, key=key), in_transaction=True
    ) as waited:
        first = place_hold(user=user, credits=funds, key=key)
    assert waited.result() == HoldResult(first.hold, created=False, balance=funds)
    assert balance_of(user).held == funds
