"""What the ledger answers."""

import secrets

import pytest
from django.db import connection

from credits.models import CreditEntry, EntrySource
from credits.queries import account_of, balance_of, owner_of, recent_entries, staff_named
from credits.services import ledger
from tests.credits.rows import query
from tests.factories import UserFactory, random_address
from users.models import User


@pytest.mark.django_db
def test_a_user_without_an_account_has_no_credits_and_no_entries() -> None:
    user = UserFactory.create()
    assert account_of(user) is None
    assert balance_of(user) == (0, 0, 0)
    assert list(recent_entries(user)) == []


def test_a_balance_says_what_is_held_and_what_is_left(user: User, funds: int, key: str) -> None:
    ledger.hold(user=user, credits=funds + 3, key=key, debt_limit=3)
    assert balance_of(user) == (funds, funds + 3, -3)
    account = account_of(user)
    assert account is not None
    assert account.available == -3


def test_recent_entries_are_the_users_newest_first(user: User) -> None:
    other = UserFactory.create()
    for number in range(4):
        for owner in (user, other):
            ledger.grant(
                user=owner, credits=number + 1, source=EntrySource.SURVEYS, key=f"{owner.username}:{number}"
            )
    entries = recent_entries(user, limit=3)
    assert [entry.amount for entry in entries] == [4, 3, 2]
    assert {entry.account.user_id for entry in entries} == {user.pk}


def test_the_newest_entries_of_an_account_are_read_from_an_index_in_order(user: User) -> None:
    account = account_of(user)
    assert account is not None
    newest = CreditEntry.objects.filter(account=account).order_by("-account_version")[:50]
    query("SET LOCAL enable_seqscan = off")
    query("SET LOCAL enable_bitmapscan = off")
    with connection.cursor() as cursor:
        sql, params = newest.query.sql_with_params()
        cursor.execute(f"EXPLAIN {sql}", params)
        plan = "\n".join(line for (line,) in cursor.fetchall())
    assert "Index Scan Backward using credits_entry_account_version" in plan
    assert "Sort" not in plan


def test_a_user_is_found_by_the_address_in_any_casing(user: User) -> None:
    address = user.profile_address or ""
    for spelling in (address, address.lower(), "0x" + address[2:].upper()):
        assert owner_of(spelling) == user
    assert owner_of(random_address()) is None
    assert owner_of("not an address") is None


@pytest.mark.django_db
def test_staff_are_found_by_username_and_nobody_else_is() -> None:
    staff = UserFactory.create(profile_address=None, is_staff=True)
    gone = UserFactory.create(profile_address=None, is_staff=True, is_active=False)
    assert staff_named(staff.username) == staff
    assert staff_named(gone.username) is None
    assert staff_named(UserFactory.create().username) is None
    assert staff_named(secrets.token_hex(8)) is None
