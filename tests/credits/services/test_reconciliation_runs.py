"""Recomputing the ledger leaves on record what was compared and what was found."""

import random

import pytest
from django.utils import timezone

from credits.models import EntrySource, ReconciliationRun
from credits.services import entries, reconciliation
from credits.services.reconciliation import Comparison
from gateway.common.leases import try_lease
from tests.credits.rows import query
from tests.database import as_owner
from tests.factories import UserFactory
from tests.threads import at_once

pytestmark = pytest.mark.django_db


def account(credits: int) -> int:
    user = UserFactory.create()
    entries.grant(user=user, credits=credits, source=EntrySource.SURVEYS, key=user.username)
    return entries.open_account(user_id=user.pk).pk


def test_a_sound_ledger_is_recorded_as_such() -> None:
    account(random.randint(1, 99))
    begin = timezone.now()
    audit = reconciliation.reconcile(now=begin)
    assert audit == ReconciliationRun.objects.get()
    assert audit is not None
    assert (audit.kind, audit.started_at) == ("ledger", begin)
    assert audit.counts == {"accounts": 1, "entries": 1, "holds": 0, "findings": 0}
    assert audit.findings == []
    assert audit.finished_at is not None
    assert audit.finished_at >= begin


def test_a_sequence_that_is_behind_its_ids_is_a_finding() -> None:
    owner = UserFactory.create()
    try:
        as_owner("SELECT setval(pg_get_serial_sequence('users_user', 'id'), 1, false)")
        audit = reconciliation.reconcile(now=timezone.now())
    finally:
        # A rollback does not restore a sequence.
        as_owner(f"SELECT setval(pg_get_serial_sequence('users_user', 'id'), {owner.pk})")
    assert audit is not None
    assert [(finding["rule"], finding["ids"]) for finding in audit.findings] == [
        ("a table's sequence is ahead of its ids", {"table": "users_user"})
    ]
    assert audit.counts["findings"] == 1


def test_findings_show_the_actual_and_the_expected_value() -> None:
    amount, off = random.randint(1, 99), random.randint(1, 99)
    changed_account = account(amount)
    account(amount)
    query("UPDATE credits_account SET balance = balance + %s WHERE id = %s", off, changed_account)
    audit = reconciliation.reconcile(now=timezone.now())
    assert audit is not None
    assert audit.counts["findings"] == 1
    assert audit.findings == [
        {
            "rule": "balance is the sum of the entries",
            "have": str(amount + off),
            "wanted": str(amount),
            "ids": {"account": str(changed_account), "row": str(changed_account)},
        }
    ]


def test_of_very_many_findings_the_first_are_kept_and_all_are_counted() -> None:
    many = [{"rule": str(number)} for number in range(1_001)]
    audit = reconciliation.run(
        kind=ReconciliationRun.Kind.CHAIN,
        compare=lambda: Comparison({"rows": 7}, many),
        now=timezone.now(),
    )
    assert audit is not None
    assert audit.counts == {"rows": 7, "findings": 1_001}
    assert audit.findings == many[:1_000]


def test_an_aborted_comparison_stays_unfinished() -> None:
    def break_off() -> Comparison:
        raise RuntimeError("the database went away")

    with pytest.raises(RuntimeError):
        reconciliation.run(kind=ReconciliationRun.Kind.LEDGER, compare=break_off, now=timezone.now())
    assert ReconciliationRun.objects.get().finished_at is None


@pytest.mark.django_db(transaction=True)
def test_a_run_during_another_one_is_skipped() -> None:
    with try_lease("reconciliation.ledger") as acquired:
        assert acquired
        assert at_once([lambda: reconciliation.reconcile(now=timezone.now())]) == [None]
    assert not ReconciliationRun.objects.exists()
