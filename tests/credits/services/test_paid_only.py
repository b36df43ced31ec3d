"""Holds that take only credits that were paid for: neither given credits nor debt, whatever happens at once."""

import json
import random
import secrets
from functools import partial
from typing import Any

import pytest

from credits.models import CreditHold, EntrySource, PaidSpending
from credits.queries import balance_of
from credits.services import entries, holds
from credits.services.reconciliation import find_differences
from gateway.common import db
from tests.credits.holding import capture
from tests.credits.rows import everything
from tests.database import tamper
from tests.factories import UserFactory
from tests.threads import at_once
from users.models import User

pytestmark = pytest.mark.django_db


def _with(*, paid: int, given: int) -> User:
    user = UserFactory.create()
    for amount, source in ((paid, EntrySource.CREDIT_PURCHASE), (given, EntrySource.CHECK_IN)):
        if amount:
            entries.grant(user=user, credits=amount, source=source, key=secrets.token_hex(16))
    return user


def _place(user: User, credits: int, *, paid_only: bool = True, debt_limit: int = 0) -> tuple[str, int, int]:
    """Place a hold; return the outcome, the hold's id and what is available."""
    wanted: dict[str, Any] = {
        "place": 0,
        "user_id": user.pk,
        "key": secrets.token_hex(16),
        "credits": credits,
    }
    wanted |= {"debt_limit": debt_limit, "paid_only": paid_only}
    row = db.only_row(
        "SELECT outcome, hold_id, available FROM credits_place_holds(%(wanted)s::jsonb)",
        {"wanted": json.dumps([wanted])},
    )
    return str(row[0]), int(row[1]), row[2]


def _outcome_of(user: User, credits: int) -> str:
    return _place(user, credits)[0]


def _spent(user: User) -> int:
    return PaidSpending.objects.filter(account__user=user).values_list("credits", flat=True).first() or 0


def test_given_credits_do_not_pay() -> None:
    paid = random.randint(5, 50)
    user = _with(paid=paid, given=1_000)
    before = everything()
    outcome, _, available = _place(user, paid + 1)
    assert (outcome, available) == ("unpaid", paid)
    assert everything() == before
    assert _place(user, paid)[0] == "placed"
    assert _place(user, 1)[::2] == ("unpaid", 0)
    assert find_differences() == []


def test_debt_does_not_pay() -> None:
    user = _with(paid=10, given=0)
    before = everything()
    assert _place(user, 11, debt_limit=10**6)[0] == "insufficient"
    assert everything() == before
    assert _place(user, 11, paid_only=False, debt_limit=10**6)[0] == "placed"


def test_other_holds_spend_given_credits_first() -> None:
    user = _with(paid=100, given=100)
    assert _place(user, 100, paid_only=False)[0] == "placed"
    assert _place(user, 100)[0] == "placed"
    assert balance_of(user).available == 0
    assert _spent(user) == 100


@pytest.mark.parametrize(
    ("source", "left"),
    [
        (EntrySource.PAYOUT_CLAWBACK, 60),
        (EntrySource.EARNING_REVERSAL, 100),
    ],
)
def test_money_that_went_back_pays_no_more(source: EntrySource, left: int) -> None:
    user = _with(paid=100, given=100)
    entries.reverse(user=user, credits=40, source=source, key=secrets.token_hex(16))
    assert _place(user, left + 1)[::2] == ("unpaid", left)
    assert _place(user, left)[0] == "placed"


def test_what_a_call_did_not_cost_is_there_for_the_next() -> None:
    user = _with(paid=100, given=100)
    _, hold, _ = _place(user, 80)
    capture(hold_id=hold, credits=30)
    assert _spent(user) == 30
    _, released, _ = _place(user, 70)
    holds.release(hold_id=released)
    _, withdrawn, _ = _place(user, 70)
    db.all_rows("SELECT credits_withdraw_holds(ARRAY[%(hold)s::bigint])::text", {"hold": withdrawn})
    assert _spent(user) == 30
    assert _place(user, 71)[0] == "unpaid"
    assert find_differences() == []


def test_a_reopened_call_holds_its_credits_again() -> None:
    user = _with(paid=100, given=0)
    _, hold, _ = _place(user, 80)
    capture(hold_id=hold, credits=30)
    holds.reopen(hold_ids=[hold])
    assert _spent(user) == 80
    assert find_differences() == []


def test_a_raise_is_bound_by_what_was_paid_too() -> None:
    user = _with(paid=50, given=100)
    _, hold, _ = _place(user, 20)
    before = everything()
    assert holds.raise_hold(hold_id=hold, credits=51, badge_debt=10**6) is False
    assert everything() == before
    assert holds.raise_hold(hold_id=hold, credits=50, badge_debt=0) is True
    assert _spent(user) == 50


def test_calls_at_once_never_spend_more_than_was_paid(transactional_db: None) -> None:
    each, most = random.randint(3, 9), random.randint(2, 6)
    user = _with(paid=each * most + each - 1, given=10_000)
    outcomes = at_once([partial(_outcome_of, user, each)] * 16, in_transaction=True)
    assert [str(outcome) for outcome in outcomes].count("placed") == most
    assert CreditHold.objects.filter(paid_only=True).count() == most
    assert _spent(user) == each * most
    assert find_differences() == []


def test_the_nightly_comparison_finds_a_wrong_count() -> None:
    user = _with(paid=100, given=0)
    _place(user, 40)
    tamper("UPDATE credits_paidspending SET credits = 39")
    [found] = find_differences()
    assert found.rule == "paid spending is the sum of the holds of paid credits"
