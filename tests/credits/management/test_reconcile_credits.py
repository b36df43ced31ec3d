"""`manage.py reconcile_credits`."""

from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from credits.services import ledger
from tests.credits.rows import query
from users.models import User


def test_a_sound_ledger_is_one_line_with_what_was_checked(user: User, key: str) -> None:
    ledger.hold(user=user, credits=1, key=key)
    out = StringIO()
    call_command("reconcile_credits", stdout=out)
    assert out.getvalue() == "No difference: 1 accounts, 1 entries, 1 holds checked.\n"


def test_a_difference_is_printed_and_the_exit_status_is_1(user: User, funds: int) -> None:
    account = ledger.open_account(user=user)
    query("UPDATE credits_account SET balance = balance + 1")
    out = StringIO()
    with pytest.raises(CommandError, match="1 differences") as failure:
        call_command("reconcile_credits", stdout=out)
    assert failure.value.returncode == 1
    assert out.getvalue() == (
        f"account {account.pk}: balance is the sum of the entries; "
        f"row {account.pk} says {funds + 1}, the other rows say {funds}\n"
    )
