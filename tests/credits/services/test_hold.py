"""Holding credits."""

import secrets

import pytest

from credits.errors import InsufficientCredits
from credits.models import EntrySource
from credits.queries import balance_of
from credits.services import ledger
from tests.factories import UserFactory


@pytest.mark.django_db
def test_smoke() -> None:
    user = UserFactory.create()
    e = ledger.grant(user=user, credits=100, source=EntrySource.SURVEYS, key=secrets.token_hex(8))
    assert (e.balance_before, e.balance_after) == (0, 100)
    h = ledger.hold(user=user, credits=60, key="a")
    assert h.created and h.balance == 100
    assert not ledger.hold(user=user, credits=70, key="a").created
    with pytest.raises(InsufficientCredits):
        ledger.hold(user=user, credits=60, key="b")
    assert ledger.raise_hold(hold_id=h.hold.pk, credits=90, debt_limit=0)
    assert not ledger.raise_hold(hold_id=h.hold.pk, credits=101, debt_limit=0)
    c = ledger.capture(hold_id=h.hold.pk, credits=95)
    assert c is not None
    assert c.balance_after == 5
    assert ledger.capture(hold_id=h.hold.pk, credits=95) == c
    assert not ledger.release(hold_id=h.hold.pk)
    assert balance_of(user) == (5, 0, 5)
