"""Raising a hold for a replacement."""

import secrets
from functools import partial

import pytest

from credits.models import CreditHold
from credits.queries import balance_of
from credits.services import holds
from credits.services.reconciliation import find_differences
from tests.credits.holding import capture, place_hold
from tests.credits.rows import everything
from tests.threads import at_once, waits_for_this_transaction
from users.models import User


@pytest.fixture
def held(user: User, funds: int, key: str) -> int:
    """Return the id of an open hold of 10 credits."""
    return place_hold(user=user, credits=10, key=key).hold.pk


def test_a_raise_sets_the_difference_aside(user: User, held: int, funds: int) -> None:
    assert holds.raise_hold(hold_id=held, credits=25, badge_debt=0) is True
    assert CreditHold.objects.get(pk=held).amount == 25
    assert balance_of(user) == (funds, 25, funds - 25)


def test_a_raise_may_use_the_debt_limit_to_the_last_credit(user: User, held: int, funds: int) -> None:
    before = everything()
    assert holds.raise_hold(hold_id=held, credits=funds + 6, badge_debt=5) is False
    assert everything() == before
    assert holds.raise_hold(hold_id=held, credits=funds + 5, badge_debt=5) is True
    assert balance_of(user) == (funds, funds + 5, -5)


@pytest.mark.parametrize("total", [10, 9])
def test_a_hold_that_already_covers_stays_as_it_is(held: int, total: int) -> None:
    before = everything()
    assert holds.raise_hold(hold_id=held, credits=total, badge_debt=0) is True
    assert everything() == before


def test_a_closed_hold_is_not_raised(held: int) -> None:
    holds.release(hold_id=held)
    before = everything()
    assert holds.raise_hold(hold_id=held, credits=25, badge_debt=0) is False
    assert everything() == before


def test_16_concurrent_equal_raises_reserve_once(
    transactional_db: None, user: User, held: int, funds: int
) -> None:
    assert (
        at_once(
            [partial(holds.raise_hold, hold_id=held, credits=funds, badge_debt=0)] * 16, in_transaction=True
        )
        == [True] * 16
    )
    assert balance_of(user) == (funds, funds, 0)
    assert find_differences() == []


def test_concurrent_different_raises_end_at_the_largest(
    transactional_db: None, user: User, held: int, funds: int
) -> None:
    at_once(
        [partial(holds.raise_hold, hold_id=held, credits=20 + n, badge_debt=0) for n in range(16)],
        in_transaction=True,
    )
    assert balance_of(user) == (funds, 35, funds - 35)
    assert find_differences() == []


def test_a_raise_that_waited_sees_what_a_new_hold_took(
    transactional_db: None, user: User, held: int, funds: int
) -> None:
    with waits_for_this_transaction(
        partial(holds.raise_hold, hold_id=held, credits=11, badge_debt=0), in_transaction=True
    ) as waited:
        place_hold(user=user, credits=funds - 10, key=secrets.token_hex(16))
    assert waited.result() is False
    assert balance_of(user) == (funds, funds, 0)


def test_a_raise_that_waited_for_the_capture_raises_nothing(
    transactional_db: None, user: User, held: int, funds: int
) -> None:
    with waits_for_this_transaction(
        partial(holds.raise_hold, hold_id=held, credits=11, badge_debt=0), in_transaction=True
    ) as waited:
        capture(hold_id=held, credits=4)
    assert waited.result() is False
    assert balance_of(user) == (funds - 4, 0, funds - 4)
    assert find_differences() == []
