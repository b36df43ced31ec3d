"""Adjusting a balance by hand."""

import pytest

from credits.errors import KeyConflict
from credits.models import EntrySource
from credits.queries import balance_of
from credits.services import entries
from gateway.common.errors import ReasonRequired
from tests.credits.rows import everything
from tests.factories import UserFactory
from users.models import User


@pytest.fixture
def staff(db: None) -> User:
    return UserFactory.create(profile_address=None, is_staff=True)


def test_an_adjustment_records_its_actor_and_reason(user: User, staff: User, funds: int, key: str) -> None:
    entry = entries.adjust(user=user, credits=5, key=key, actor=staff, reason=" paid twice ")
    assert (entry.source, entry.actor, entry.reason) == (EntrySource.STAFF_ADJUSTMENT, staff, "paid twice")
    assert (entry.balance_before, entry.balance_after) == (funds, funds + 5)


def test_an_adjustment_may_leave_the_user_in_debt(user: User, staff: User, funds: int, key: str) -> None:
    entry = entries.adjust(user=user, credits=-funds - 3, key=key, actor=staff, reason="abuse")
    assert (entry.amount, entry.balance_after) == (-funds - 3, -3)
    assert balance_of(user) == (-3, 0, -3)


@pytest.mark.parametrize("reason", ["", "  \n"])
def test_an_adjustment_without_a_reason_is_refused(user: User, staff: User, key: str, reason: str) -> None:
    before = everything()
    with pytest.raises(ReasonRequired, match="Give a reason"):
        entries.adjust(user=user, credits=5, key=key, actor=staff, reason=reason)
    assert everything() == before


def test_an_adjustment_by_nothing_is_refused(user: User, staff: User, key: str) -> None:
    before = everything()
    with pytest.raises(ValueError, match="at least one"):
        entries.adjust(user=user, credits=0, key=key, actor=staff, reason="typo")
    assert everything() == before


def test_a_repeated_adjustment_moves_nothing(user: User, staff: User, key: str) -> None:
    first = entries.adjust(user=user, credits=-5, key=key, actor=staff, reason="typo")
    before = everything()
    assert entries.adjust(user=user, credits=-5, key=key, actor=staff, reason="typo") == first
    with pytest.raises(KeyConflict):
        entries.adjust(user=user, credits=5, key=key, actor=staff, reason="typo")
    assert everything() == before
