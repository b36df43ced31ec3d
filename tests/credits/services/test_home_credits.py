"""First credits are spent at home, and elsewhere only on the chains that their policy names."""

import json
import random
import secrets
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from credits.models import CreditAccount, CreditEntry, CreditHold, EntrySource, ExpiringLot, HomeCredits
from credits.services import entries, expiry, holds
from credits.services.reconciliation import find_differences
from gateway.common import db
from tests.credits.rows import everything
from tests.factories import UserFactory
from users.models import User

pytestmark = pytest.mark.django_db
_NAMED, _OTHER = random.sample(range(2, 10**6), 2)


def _with(*, first: int, given: int = 0, paid: int = 0, days: int = 1) -> User:
    user = UserFactory.create()
    for amount, source in (
        (first, EntrySource.FIRST_CREDITS),
        (given, EntrySource.CHECK_IN),
        (paid, EntrySource.CREDIT_PURCHASE),
    ):
        if amount:
            entries.grant(user=user, credits=amount, source=source, key=secrets.token_hex(16))
    account = CreditAccount.objects.get(user=user)
    ends = timezone.now() + timedelta(days=days)
    HomeCredits.objects.create(account=account, credits=first, chain_ids=[_NAMED], expires_at=ends)
    return user


def _place(user: User, credits: int, chain: int | None = None, **terms: Any) -> tuple[str, int]:
    """Place a hold for a call on a chain, home by default; return the outcome and what is available."""
    wanted = {"place": 0, "user_id": user.pk, "key": secrets.token_hex(16), "credits": credits}
    wanted |= {"debt_limit": 0, "paid_only": False, "elsewhere": chain} | terms
    row = db.only_row(
        "SELECT outcome, available FROM credits_place_holds(%(wanted)s::jsonb)",
        {"wanted": json.dumps([wanted])},
    )
    return str(row[0]), row[1]


def test_first_credits_stay_at_home_where_a_chain_takes_given_credits() -> None:
    paid = random.randint(5, 500)
    user = _with(first=1_000, given=1_000, paid=paid)
    before = everything()
    assert _place(user, paid + 1, _OTHER) == ("unpaid", paid)
    assert _place(user, 2_000 + paid + 1, _OTHER, debt_limit=10**6)[0] == "insufficient"
    assert everything() == before
    for part in (paid - 1, 1):
        key = secrets.token_hex(8)
        assert _place(user, part, _OTHER, key=key)[0] == "placed"
        holds.close(costs={CreditHold.objects.get(key=key).pk: part})
    # However often a call elsewhere was charged, it has taken none of them.
    assert _place(user, 1, _OTHER) == ("unpaid", 0)
    assert HomeCredits.objects.get().left == 1_000
    assert _place(user, 2_000)[0] == "placed"
    assert find_differences() == []


def test_a_named_chain_takes_first_credits_that_cover_the_call_and_others_take_none() -> None:
    first = random.randint(100, 500)
    user = _with(first=first, given=1_000)
    before = everything()
    assert _place(user, first, _OTHER, paid_only=True) == ("unpaid", 0)
    assert _place(user, first + 1, _NAMED, paid_only=True) == ("unpaid", 0)
    assert everything() == before
    assert _place(user, first - 1, _NAMED, paid_only=True)[0] == "placed"
    # One is left, because other holds take first credits too.
    assert _place(user, 2, _NAMED, paid_only=True) == ("unpaid", 0)
    assert _place(user, 1, _NAMED, paid_only=True)[0] == "placed"


def test_paid_credits_pay_everywhere_beside_first_credits() -> None:
    user = _with(first=100, paid=50)
    assert _place(user, 51, _OTHER, paid_only=True) == ("unpaid", 50)
    assert _place(user, 50, _OTHER, paid_only=True)[0] == "placed"


def test_what_was_spent_at_home_is_no_longer_kept_for_it() -> None:
    user = _with(first=100, given=100)
    key = secrets.token_hex(8)
    holds.close(costs={holds.place(user_id=user.pk, credits=60, key=key): 60})
    assert _place(user, 1, _OTHER) == ("unpaid", 0)
    holds.close(costs={holds.place(user_id=user.pk, credits=40, key=secrets.token_hex(8)): 40})
    assert _place(user, 100, _OTHER)[0] == "placed"
    assert HomeCredits.objects.get().left == 0
    assert find_differences() == []


def test_credits_paid_elsewhere_leave_first_credits_at_home() -> None:
    user = _with(first=100, paid=50)
    key = secrets.token_hex(8)
    assert _place(user, 50, _OTHER, paid_only=True, key=key)[0] == "placed"
    (closed,) = holds.close(costs={CreditHold.objects.get(key=key).pk: 50})
    assert (closed.from_first, HomeCredits.objects.get().left) == (0, 100)
    before = everything()
    assert _place(user, 1, _OTHER) == ("unpaid", 0)
    assert everything() == before


def test_a_charge_says_what_first_credits_paid_and_a_reversal_gives_it_back() -> None:
    first = random.randint(50, 500)
    user, other = _with(first=first, paid=10_000), _with(first=first)
    keys = [secrets.token_hex(8) for _ in range(4)]
    costs = [first - 20, 50, 7, 5]
    own = [holds.place(user_id=user.pk, credits=900, key=key) for key in keys[:3]]
    of_other = holds.place(user_id=other.pk, credits=5, key=keys[3])
    closed = holds.close(costs=dict(zip([*own, of_other], costs, strict=True)))
    assert [hold.from_first for hold in closed] == [first - 20, 20, 0, 5]
    assert [hold.earning for hold in closed] == [0, 30, 7, 0]
    spent = HomeCredits.objects.order_by("pk").values_list("spent", flat=True)
    assert list(spent) == [first + 37, 5]
    assert find_differences() == []

    holds.reopen(hold_ids=own)
    assert list(spent.all()) == [0, 5]
    assert find_differences() == []
    (again,) = holds.close(costs={own[1]: 50})
    assert again.from_first == min(50, first)


def test_what_expired_of_first_credits_pays_no_charge() -> None:
    user = _with(first=100, paid=100)
    lot = CreditEntry.objects.get(source=EntrySource.FIRST_CREDITS)
    held = holds.place(user_id=user.pk, credits=30, key=secrets.token_hex(8))
    now = timezone.now()
    ExpiringLot.objects.create(entry=lot, credits=100, expires_at=now)
    assert expiry.expire(now=now) == 1
    assert HomeCredits.objects.get().left == 30
    later = holds.place(user_id=user.pk, credits=40, key=secrets.token_hex(8))
    assert [hold.from_first for hold in holds.close(costs={held: 30})] == [30]
    assert [hold.from_first for hold in holds.close(costs={later: 40})] == [0]
    assert find_differences() == []


def test_forged_spending_of_first_credits_is_found() -> None:
    _with(first=100)
    HomeCredits.objects.update(spent=1)
    rules = [finding.rule for finding in find_differences()]
    assert rules == ["spent first credits are the charges since and what expired"]


def test_expired_first_credits_keep_nothing_at_home() -> None:
    assert _place(_with(first=100, days=-1), 100, _OTHER)[0] == "placed"
