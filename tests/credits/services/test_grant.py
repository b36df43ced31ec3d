"""Granting credits."""

import random
import secrets
from functools import partial

import pytest

from credits.errors import KeyConflict
from credits.models import CreditEntry, EntrySource
from credits.queries import balance_of
from credits.services import entries as credits_entries
from credits.services.reconciliation import find_differences
from tests.credits.rows import everything, query
from tests.factories import UserFactory
from tests.threads import at_once
from users.models import User


def test_a_grant_is_an_entry_on_top_of_the_balance(user: User, funds: int, key: str) -> None:
    amount = random.randint(1, 10**6)
    entry = credits_entries.grant(
        user=user, credits=amount, source=EntrySource.OFFERWALL, key=key, reason="offer"
    )

    assert (entry.amount, entry.balance_before, entry.balance_after) == (amount, funds, funds + amount)
    assert (entry.account_version, entry.source, entry.reason) == (2, EntrySource.OFFERWALL, "offer")
    assert entry == CreditEntry.objects.get(key=key)
    assert balance_of(user) == (funds + amount, 0, funds + amount)


@pytest.mark.django_db
def test_a_grant_opens_the_account_of_a_user_who_has_none(funds: int, key: str) -> None:
    user = UserFactory.create()
    credits_entries.grant(user=user, credits=funds, source=EntrySource.CHECK_IN, key=key)
    assert balance_of(user) == (funds, 0, funds)


def test_a_repeated_key_returns_the_first_entry_and_moves_nothing(user: User, key: str) -> None:
    first = credits_entries.grant(user=user, credits=7, source=EntrySource.SURVEYS, key=key, reason="webhook")
    before = everything()
    again = credits_entries.grant(
        user=user, credits=7, source=EntrySource.SURVEYS, key=key, reason="reconciled"
    )
    assert (again, again.reason) == (first, "webhook")
    assert everything() == before


@pytest.mark.parametrize(
    ("amount", "source"), [(8, EntrySource.SURVEYS), (7, EntrySource.OFFERWALL)], ids=["amount", "source"]
)
def test_a_key_used_for_something_else_is_a_conflict(user: User, key: str, amount: int, source: str) -> None:
    credits_entries.grant(user=user, credits=7, source=EntrySource.SURVEYS, key=key)
    before = everything()
    with pytest.raises(KeyConflict):
        credits_entries.grant(user=user, credits=amount, source=source, key=key)
    assert everything() == before


def test_a_key_used_for_another_user_is_a_conflict(user: User, key: str) -> None:
    credits_entries.grant(user=user, credits=7, source=EntrySource.SURVEYS, key=key)
    other = UserFactory.create()
    credits_entries.open_account(user_id=other.pk)
    before = everything()
    with pytest.raises(KeyConflict):
        credits_entries.grant(user=other, credits=7, source=EntrySource.SURVEYS, key=key)
    assert everything() == before


@pytest.mark.parametrize("amount", [0, -1])
def test_a_grant_is_positive(user: User, key: str, amount: int) -> None:
    before = everything()
    with pytest.raises(ValueError, match="positive"):
        credits_entries.grant(user=user, credits=amount, source=EntrySource.SURVEYS, key=key)
    assert everything() == before


@pytest.mark.parametrize("source", ["RELAY_TRANSACTION", "STAFF_ADJUSTMENT", "GIFT"])
def test_a_source_that_is_not_granted_is_refused(user: User, key: str, source: str) -> None:
    before = everything()
    with pytest.raises(ValueError, match=source):
        credits_entries.grant(user=user, credits=1, source=source, key=key)
    assert everything() == before


def test_a_grant_is_one_statement(user: User, key: str, django_assert_num_queries: type) -> None:
    with django_assert_num_queries(1):
        credits_entries.grant(user=user, credits=1, source=EntrySource.SURVEYS, key=key)


def test_16_concurrent_grants_with_one_key_post_once(
    transactional_db: None, user: User, funds: int, key: str
) -> None:
    entries = at_once(
        [partial(credits_entries.grant, user=user, credits=5, source=EntrySource.SURVEYS, key=key)] * 16,
        in_transaction=True,
    )
    assert {entry.pk for entry in entries if isinstance(entry, CreditEntry)} == {
        CreditEntry.objects.get(key=key).pk
    }
    assert balance_of(user).balance == funds + 5
    assert find_differences() == []


def test_concurrent_grants_with_one_key_to_two_users_post_for_one_of_them(
    transactional_db: None, funds: int, key: str
) -> None:
    users = [UserFactory.create() for _ in range(8)]
    results = at_once(
        [
            partial(credits_entries.grant, user=user, credits=funds, source=EntrySource.SURVEYS, key=key)
            for user in users
        ],
        in_transaction=True,
    )
    assert sum(isinstance(result, CreditEntry) for result in results) == 1
    assert sum(isinstance(result, KeyConflict) for result in results) == 7
    assert query("SELECT sum(balance) FROM credits_account") == [(funds,)]
    assert find_differences() == []


def test_16_concurrent_grants_make_a_chain_without_gaps(
    transactional_db: None, user: User, funds: int
) -> None:
    amounts = [random.randint(1, 10**6) for _ in range(16)]

    give = partial(credits_entries.grant, user=user, source=EntrySource.SURVEYS)
    at_once(
        [partial(give, credits=amount, key=secrets.token_hex(16)) for amount in amounts], in_transaction=True
    )
    assert balance_of(user).balance == funds + sum(amounts)
    assert query("SELECT array_agg(account_version ORDER BY id) FROM credits_entry") == [
        (list(range(1, 18)),)
    ]
    assert find_differences() == []
