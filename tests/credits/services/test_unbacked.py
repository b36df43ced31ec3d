"""What the service gives in a day without money or an earning behind it: new debt, and the credits of check-ins."""

import json
import random
import secrets
from collections import Counter
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest
from django.db import connection

from credits.errors import InsufficientCredits
from credits.models import CreditAccount, CreditEntry, CreditHold, EntrySource, UnbackedCeiling, UnbackedDay
from credits.queries import balance_of, debt_terms, unbacked_today
from credits.services import entries, holds, unbacked
from credits.services.reconciliation import find_differences
from tests.credits.holding import HoldResult, capture, place_hold
from tests.credits.rows import everything, query
from tests.database import tamper
from tests.factories import UserFactory, random_address
from tests.threads import at_once, locked_elsewhere, waits_for_this_transaction
from users.models import User

pytestmark = pytest.mark.django_db


def broke(kept: int) -> User:
    """Return a user who has earned this number of credits and spent all of them."""
    user = UserFactory.create()
    entries.grant(user=user, credits=kept, source=EntrySource.SURVEYS, key=secrets.token_hex(16))
    capture(hold_id=place_hold(user=user, credits=kept, key=secrets.token_hex(16)).hold.pk, credits=kept)
    return user


def set_ceiling(credits: int) -> None:
    UnbackedCeiling.objects.create(credits=credits)


def owe(user: User, credits: int) -> HoldResult:
    return place_hold(user=user, credits=credits, key=secrets.token_hex(16), debt_limit=10**9)


def test_only_the_part_below_zero_is_new_debt() -> None:
    user = broke(100)
    entries.grant(user=user, credits=30, source=EntrySource.CHECK_IN, key=secrets.token_hex(16))
    owe(user, 20)
    assert not UnbackedDay.objects.exists()
    hold = owe(user, 50).hold
    owe(user, 60)
    assert unbacked_today().debt == 100
    assert (hold.debt, hold.debt_day) == (40, datetime.now(UTC).date())
    with pytest.raises(InsufficientCredits):
        owe(user, 1)
    assert find_differences() == []


def test_a_hold_beyond_the_days_ceiling_is_refused_and_leaves_nothing() -> None:
    set_ceiling(70)
    users = [broke(50), broke(50)]
    owe(users[0], 50)
    before, day = everything(), query("SELECT * FROM credits_unbackedday")
    with pytest.raises(InsufficientCredits):
        owe(users[1], 21)
    assert (everything(), query("SELECT * FROM credits_unbackedday")) == (before, day)
    assert debt_terms([(users[1].pk, 10**9)]) == [(50, 20)]
    owe(users[1], 20)
    assert unbacked_today() == (70, 0, 70)


def test_without_a_ceiling_nothing_is_lent() -> None:
    user = broke(50)
    tamper("DELETE FROM credits_unbackedceiling")
    with pytest.raises(InsufficientCredits):
        owe(user, 1)


def test_a_raise_takes_its_new_debt_too() -> None:
    set_ceiling(60)
    user = broke(100)
    hold = owe(user, 40).hold
    assert not holds.raise_hold(hold_id=hold.pk, credits=61, badge_debt=10**9)
    assert unbacked_today().debt == 40
    assert holds.raise_hold(hold_id=hold.pk, credits=60, badge_debt=10**9)
    assert unbacked_today().debt == 60
    hold.refresh_from_db()
    assert (hold.amount, hold.debt) == (60, 60)


def test_a_withdrawn_hold_returns_its_new_debt_at_once() -> None:
    set_ceiling(100)
    user = broke(100)
    kept, withdrawn = owe(user, 40).hold, owe(user, 50).hold
    with connection.cursor() as cursor:
        cursor.execute("SELECT credits_withdraw_holds(%s)", [[withdrawn.pk]])
    assert unbacked_today().debt == kept.debt == 40
    account = CreditAccount.objects.get(user=user)
    assert (account.held, account.open_holds) == (40, 1)
    assert find_differences() == []
    owe(user, 60)
    assert unbacked_today().debt == 100


def test_the_next_count_releases_the_unused_part_of_a_hold() -> None:
    user = broke(1_000)
    entries.grant(user=user, credits=10, source=EntrySource.CHECK_IN, key=secrets.token_hex(16))
    kept, captured, released = owe(user, 110).hold, owe(user, 200).hold, owe(user, 300).hold
    capture(hold_id=captured.pk, credits=150)
    holds.release(hold_id=released.pk)
    yesterday = owe(broke(70), 70).hold
    CreditHold.objects.filter(pk=yesterday.pk).update(debt_day=datetime.now(UTC).date() - timedelta(days=1))
    assert unbacked_today().debt == 100 + 200 + 300 + 70
    unbacked.recount_today()
    assert unbacked_today().debt == 100 + 150
    assert kept.debt == 100


def test_a_hold_that_needs_no_debt_waits_for_no_debtor(transactional_db: None) -> None:
    rich, poor = UserFactory.create(), broke(100)
    entries.grant(user=rich, credits=100, source=EntrySource.SURVEYS, key=secrets.token_hex(16))
    with locked_elsewhere(lambda: owe(poor, 50)):
        assert place_hold(user=rich, credits=100, key=secrets.token_hex(16), debt_limit=10**9).created
    assert unbacked_today().debt == 50


def test_64_concurrent_holds_never_exceed_the_ceiling(transactional_db: None) -> None:
    debt, fitting = random.randint(10, 99), random.randint(20, 50)
    set_ceiling(debt * fitting + random.randint(0, debt - 1))
    users = [broke(debt) for _ in range(16)]
    calls = [partial(owe, user, debt) for user in (*users, *users, *users, *users)]
    # Each user can owe once; the check-ins of others take from the same ceiling.
    check_ins = max(0, fitting - 10)
    calls[-1:] = [lambda: unbacked.take_for_check_in(credits=debt * check_ins)]  # type: ignore[list-item]
    results = at_once(calls, in_transaction=True)
    taken = unbacked_today()
    assert taken.debt + taken.check_ins <= taken.ceiling
    placed = [result for result in results if isinstance(result, HoldResult)]
    assert taken.debt == debt * len(placed) == -sum(balance_of(user).available for user in users)
    # Nothing that fits was refused.
    left = taken.ceiling - taken.debt - taken.check_ins
    assert len(placed) == 16 or left < debt * max(1, check_ins)
    assert find_differences() == []


def test_the_service_loses_at_most_the_ceiling_in_a_day() -> None:
    ceiling = random.randint(500, 2_000)
    set_ceiling(ceiling)
    users = [broke(random.randint(1, 400)) for _ in range(12)]
    before = {user.pk: balance_of(user).balance for user in users}
    for _ in range(150):
        user = random.choice(users)
        if random.random() < 0.1 and unbacked.take_for_check_in(credits=(gift := random.randint(1, 50))):
            entries.grant(user=user, credits=gift, source=EntrySource.CHECK_IN, key=secrets.token_hex(16))
            continue
        amount = random.randint(1, 100)
        try:
            hold = owe(user, amount).hold
        except InsufficientCredits:
            continue
        if random.random() < 0.7:
            capture(hold_id=hold.pk, credits=random.randint(0, amount))
        if random.random() < 0.2:
            unbacked.recount_today()
    spent = sum(before[user.pk] - balance_of(user).available for user in users)
    gifts = sum(amount for (amount,) in query("SELECT amount FROM credits_entry WHERE source = 'CHECK_IN'"))
    assert 0 < spent + gifts <= ceiling
    assert find_differences() == []


def _outcomes(holds_of: dict[User, int]) -> Counter[str]:
    """Place a hold for each user on the debt limit of a badge, in one statement, and count the outcomes."""
    wanted = [
        {
            "place": place,
            "user_id": user.pk,
            "key": secrets.token_hex(16),
            "credits": amount,
            "debt_limit": 100,
        }
        for place, (user, amount) in enumerate(holds_of.items())
    ]
    rows = query(
        "SELECT outcome, count(*) FROM credits_place_holds(%s::jsonb) GROUP BY 1", json.dumps(wanted)
    )
    return Counter(dict(rows))


def test_many_free_identities_owe_nothing_beyond_their_earnings() -> None:
    users = User.objects.bulk_create(
        User(username=address, profile_address=address) for address in (random_address() for _ in range(200))
    )
    checked_in = {user: random.randint(1, 99) for user in users}
    accounts = CreditAccount.objects.bulk_create(
        CreditAccount(user=user, balance=amount, version=1) for user, amount in checked_in.items()
    )
    CreditEntry.objects.bulk_create(
        CreditEntry(
            account=account, amount=account.balance, source=EntrySource.CHECK_IN, key=secrets.token_hex(16),
            balance_before=0, balance_after=account.balance, account_version=1,
        )
        for account in accounts
    )  # fmt: skip
    earner, earned = users[random.randrange(200)], 7
    entries.grant(user=earner, credits=earned, source=EntrySource.SURVEYS, key=secrets.token_hex(16))
    limits = {user: earned if user == earner else 0 for user in users}
    available = {user: amount + limits[user] for user, amount in checked_in.items()}

    beyond = _outcomes({user: available[user] + limits[user] + 1 for user in users})
    assert (beyond, unbacked_today().debt) == ({"insufficient": 200}, 0)
    assert _outcomes({user: available[user] + limits[user] for user in users}) == {"placed": 200}
    assert unbacked_today().debt == earned
    # What was earned and taken back again is not kept.
    reversed_ = EntrySource.EARNING_REVERSAL
    entries.reverse(user=earner, credits=earned, source=reversed_, key=secrets.token_hex(16))
    assert debt_terms([(earner.pk, 100)])[0].limit == 0
    assert find_differences() == []


def test_kept_credits_are_read_under_the_lock_of_the_account(transactional_db: None) -> None:
    user = broke(100)
    with waits_for_this_transaction(partial(owe, user, 1), in_transaction=True) as waiting:
        entries.reverse(
            user=user,
            credits=50,
            source=EntrySource.EARNING_REVERSAL,
            key=secrets.token_hex(16),
            reason="test",
        )
    # It owes 50 now, and has kept 50.
    assert isinstance(waiting.result(), InsufficientCredits)
    assert unbacked_today().debt == 0
    assert find_differences() == []
