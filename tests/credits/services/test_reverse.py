"""Taking credits back that did not last."""

import pytest

from credits.errors import KeyConflict
from credits.models import EntrySource
from credits.queries import balance_of
from credits.services import entries
from credits.services.reconciliation import find_differences
from tests.credits.rows import everything
from users.models import User


@pytest.mark.parametrize("source", [EntrySource.PAYOUT_CLAWBACK, EntrySource.EARNING_REVERSAL])
def test_a_reversal_takes_back_even_spent_credits(user: User, funds: int, key: str, source: str) -> None:
    entry = entries.reverse(user=user, credits=funds + 5, source=source, key=key, reason="refunded")
    assert (entry.amount, entry.balance_before, entry.balance_after) == (-funds - 5, funds, -5)
    assert (entry.source, entry.reason) == (source, "refunded")
    assert balance_of(user) == (-5, 0, -5)
    assert find_differences() == []


def test_a_repeated_reversal_moves_nothing(user: User, key: str) -> None:
    first = entries.reverse(user=user, credits=5, source=EntrySource.PAYOUT_CLAWBACK, key=key)
    before = everything()
    assert entries.reverse(user=user, credits=5, source=EntrySource.PAYOUT_CLAWBACK, key=key) == first
    with pytest.raises(KeyConflict):
        entries.reverse(user=user, credits=6, source=EntrySource.PAYOUT_CLAWBACK, key=key)
    assert everything() == before


@pytest.mark.parametrize(
    ("amount", "source"), [(0, "PAYOUT_CLAWBACK"), (-1, "PAYOUT_CLAWBACK"), (1, "SURVEYS")]
)
def test_an_invalid_reversal_is_refused(user: User, key: str, amount: int, source: str) -> None:
    before = everything()
    with pytest.raises(ValueError, match="reversal"):
        entries.reverse(user=user, credits=amount, source=source, key=key)
    assert everything() == before
