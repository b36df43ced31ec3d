"""`manage.py reconcile_credits`."""

from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from credits.models import ReconciliationRun
from credits.services import entries, reconciliation
from gateway.common.leases import try_lease
from tests.credits.holding import place_hold
from tests.credits.rows import query
from tests.factories import UserFactory
from tests.threads import at_once
from users.models import User


def test_a_sound_ledger_is_one_line_with_what_was_checked(user: User, key: str) -> None:
    place_hold(user=user, credits=1, key=key)
    out = StringIO()
    call_command("reconcile_credits", stdout=out)
    assert out.getvalue() == "Compared: 1 accounts, 1 entries, 1 holds.\nNo difference.\n"
    assert ReconciliationRun.objects.get().counts["findings"] == 0


def test_a_difference_is_printed_and_the_exit_status_is_1(user: User, funds: int) -> None:
    account = entries.open_account(user_id=user.pk)
    query("UPDATE credits_account SET balance = balance + 1")
    out = StringIO()
    with pytest.raises(CommandError, match="1 differences") as failure:
        call_command("reconcile_credits", stdout=out)
    assert failure.value.returncode == 1
    assert out.getvalue() == (
        f"balance is the sum of the entries: account={account.pk} row={account.pk}: "
        f"have {funds + 1}; wanted {funds}\n"
        "Compared: 1 accounts, 1 entries, 0 holds.\n"
    )
    # The nightly run's figures and pages know of it.
    assert ReconciliationRun.objects.get().counts["findings"] == 1


def test_the_output_counts_the_differences_it_omits(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    for owner in (user, *UserFactory.create_batch(2)):
        entries.open_account(user_id=owner.pk)
    query("UPDATE credits_account SET balance = balance + 1")
    monkeypatch.setattr(reconciliation, "MAX_STORED_FINDINGS", 1)
    out = StringIO()
    with pytest.raises(CommandError, match="3 differences"):
        call_command("reconcile_credits", stdout=out)
    assert out.getvalue().count("balance is the sum of the entries") == 1
    assert "and 2 more, which are in the log only.\n" in out.getvalue()


@pytest.mark.django_db(transaction=True)
def test_it_does_not_wait_for_another_reconciliation(user: User) -> None:
    with try_lease("reconciliation.ledger") as acquired:
        assert acquired
        with pytest.raises(CommandError, match="in progress") as failure:
            at_once([lambda: call_command("reconcile_credits")])
    assert failure.value.returncode == 2
    assert not ReconciliationRun.objects.exists()
