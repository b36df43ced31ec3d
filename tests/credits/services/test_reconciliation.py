"""Reconciling finds what only a database superuser can break."""

import random
from dataclasses import dataclass

import pytest

from credits.models import CreditAccount, CreditEntry, EntrySource
from credits.services import entries as credits_entries
from credits.services import holds
from credits.services.reconciliation import Finding, count_rows, find_differences
from tests.credits.holding import capture, place_hold
from tests.database import tamper
from tests.factories import UserFactory

BALANCE = "balance is the sum of the entries"
VERSION = "version is the number of entries"
HELD = "held is the sum of the open holds"
OPEN = "open_holds is the number of open holds"
FOLLOWS = "an entry follows the version before it"
STARTS = "an entry starts where the one before it ended"
CHARGED = "a captured hold is charged to its account by its entry"
BELONGS = "a relay charge belongs to a captured hold"


@dataclass(frozen=True)
class Ledger:
    """An account with entries 1 to 4, the third of them a captured hold's, and an open hold of 40 credits."""

    account: int
    entries: tuple[int, ...]
    captured: int
    open: int


@pytest.fixture
def sound(db: None) -> Ledger:
    """Return one account's rows; a second account beside it must never be blamed."""
    return [_live(), _live()][0]


def _live() -> Ledger:
    user = UserFactory.create()
    key = user.username
    for number in range(2):
        credits_entries.grant(
            user=user, credits=random.randint(100, 999), source=EntrySource.SURVEYS, key=f"{key}:{number}"
        )
    captured = place_hold(user=user, credits=50, key=f"{key}:captured").hold.pk
    capture(hold_id=captured, credits=30)
    credits_entries.grant(
        user=user, credits=random.randint(100, 999), source=EntrySource.SURVEYS, key=f"{key}:last"
    )
    released = place_hold(user=user, credits=60, key=f"{key}:released").hold.pk
    holds.release(hold_id=released)
    kept = place_hold(user=user, credits=40, key=f"{key}:open").hold.pk
    entries = CreditEntry.objects.filter(account__user=user).order_by("id").values_list("id", flat=True)
    return Ledger(credits_entries.open_account(user_id=user.pk).pk, tuple(entries), captured, kept)


@pytest.mark.django_db
def test_an_empty_ledger_is_sound() -> None:
    assert find_differences() == []
    assert count_rows() == (0, 0, 0)


def test_a_sound_ledger_has_no_findings(sound: Ledger) -> None:
    assert find_differences() == []
    assert count_rows() == (2, 8, 6)


@pytest.mark.parametrize(
    ("corruption", "broken"),
    [
        ("UPDATE credits_account SET balance = balance + 1 WHERE id = {account}", {BALANCE}),
        ("UPDATE credits_account SET version = version + 1 WHERE id = {account}", {VERSION}),
        ("UPDATE credits_account SET held = held + 1 WHERE id = {account}", {HELD}),
        (
            "UPDATE credits_entry SET amount = amount + 1, balance_after = balance_after + 1 WHERE id = {entries[1]}",
            {BALANCE, STARTS},
        ),
        (
            "UPDATE credits_entry SET (balance_before, balance_after) = (0, amount) WHERE id = {entries[3]}",
            {STARTS},
        ),
        ("DELETE FROM credits_entry WHERE id = {entries[1]}", {BALANCE, VERSION, FOLLOWS, STARTS}),
        ("DELETE FROM credits_entry WHERE id = {entries[3]}", {BALANCE, VERSION}),
        ("UPDATE credits_entry SET account_version = 9 WHERE id = {entries[3]}", {FOLLOWS}),
        ("UPDATE credits_hold SET captured_amount = 29 WHERE id = {captured}", {CHARGED}),
        ("UPDATE credits_hold SET entry_id = {entries[0]} WHERE id = {captured}", {CHARGED, BELONGS}),
        ("UPDATE credits_hold SET entry_id = -1 WHERE id = {captured}", {CHARGED, BELONGS}),
        ("DELETE FROM credits_hold WHERE id = {captured}", {BELONGS}),
        ("UPDATE credits_hold SET amount = amount + 1 WHERE id = {open}", {HELD}),
        ("UPDATE credits_account SET open_holds = open_holds + 1 WHERE id = {account}", {OPEN}),
        ("DELETE FROM credits_hold WHERE id = {open}", {HELD, OPEN}),
        (
            "UPDATE credits_hold SET status = 'RELEASED', closed_at = now() WHERE id = {open}",
            {HELD, OPEN},
        ),
        (
            "DELETE FROM credits_account WHERE id = {account}",
            {"an entry has an account", "a hold has an account"},
        ),
    ],
)
def test_every_corruption_is_found_at_its_account(sound: Ledger, corruption: str, broken: set[str]) -> None:
    _corrupt(corruption, sound)
    findings = find_differences()
    assert {finding.rule for finding in findings} == broken
    assert {finding.account_id for finding in findings} == {sound.account}


def test_a_finding_shows_the_stored_value_and_the_value_computed_from_other_rows(sound: Ledger) -> None:
    _corrupt("UPDATE credits_account SET held = held + 5 WHERE id = {account}", sound)
    assert find_differences() == [Finding(HELD, sound.account, sound.account, expected=40, actual=45)]


def test_a_hold_charged_to_another_account_is_found(sound: Ledger) -> None:
    other_account = CreditAccount.objects.exclude(pk=sound.account).get().pk
    elsewhere = """
        UPDATE credits_hold SET account_id = (SELECT id FROM credits_account WHERE id <> {account})
        WHERE id = {captured}
    """
    _corrupt(elsewhere, sound)
    assert find_differences() == [Finding(CHARGED, other_account, sound.captured, expected=-30, actual=None)]


@pytest.mark.parametrize(
    ("corruption", "broken"),
    [
        ("SELECT", set()),
        (
            """
            UPDATE credits_entry SET amount = amount + 1, balance_after = balance_after + 1
            WHERE account_id = {account} AND source = 'RELAY_REVERSAL'
            """,
            {BALANCE, BELONGS},
        ),
        (
            """
            UPDATE credits_entry SET account_id = (SELECT min(id) FROM credits_account WHERE id <> {account})
            WHERE account_id = {account} AND source = 'RELAY_REVERSAL'
            """,
            {BALANCE, VERSION, STARTS, BELONGS},
        ),
    ],
)
def test_a_charge_without_a_hold_needs_a_reversal_on_its_account_of_its_amount(
    sound: Ledger, corruption: str, broken: set[str]
) -> None:
    holds.reopen(hold_ids=[sound.captured])
    _corrupt(corruption, sound)
    assert {finding.rule for finding in find_differences()} == broken


def test_an_emptied_entry_table_is_found(sound: Ledger) -> None:
    _corrupt("DELETE FROM credits_entry", sound)
    rules = {finding.rule for finding in find_differences()}
    assert rules == {BALANCE, VERSION, CHARGED}


def _corrupt(sql: str, rows: Ledger) -> None:
    tamper(sql.format(**vars(rows)))
