"""The nightly reconciliation of the ledger: every difference is an error in the log, and the task fails."""

import logging
import random

import pytest
from celery import current_app
from django.db.models import F

from credits.models import CreditAccount
from credits.services import entries
from credits.services.reconciliation import BooksDiffer
from credits.tasks import reconcile_ledger
from tests.credits.holding import place_hold
from tests.credits.rows import query
from users.models import User


def test_the_task_reports_what_it_checked_in_a_sound_ledger(
    user: User, key: str, caplog: pytest.LogCaptureFixture
) -> None:
    place_hold(user=user, credits=1, key=key)
    with caplog.at_level(logging.INFO):
        reconcile_ledger()
    assert [(line.levelname, line.getMessage()) for line in caplog.records] == [
        ("INFO", "ledger reconciliation: no difference; 1 accounts, 1 entries, 1 holds checked")
    ]


def test_each_difference_is_an_error_and_the_task_fails(
    user: User, funds: int, caplog: pytest.LogCaptureFixture
) -> None:
    account = entries.open_account(user_id=user.pk)
    off = random.randint(1, 1000)
    CreditAccount.objects.update(balance=F("balance") + off, version=F("version") + 1)
    with pytest.raises(BooksDiffer, match=r"^2 differences, run \d+$"):
        reconcile_ledger()
    errors = [line.getMessage() for line in caplog.records if line.levelname == "ERROR"]
    assert len(errors) == 2
    assert all(line.startswith("ledger reconciliation: Finding(rule=") for line in errors)
    assert f"account_id={account.pk}" in errors[0]
    assert {f"actual={funds + off}" in line for line in errors} == {True, False}
    assert CreditAccount.objects.get().balance == funds + off


def test_a_failure_reaches_the_worker(user: User, funds: int) -> None:
    query("UPDATE credits_account SET balance = balance + 1")
    assert current_app.tasks["credits.reconcile"].apply().state == "FAILURE"
