"""`manage.py erase_deleted_accounts`, in a process that has only the secrets of the eraser."""

import os
import signal
from typing import Any

import pytest
from django.core.management import CommandError

from users.management.commands.erase_deleted_accounts import Command
from users.services import deletion

pytestmark = pytest.mark.django_db


def test_it_needs_the_owner_of_the_tables_and_none_of_the_secrets_of_other_processes(settings: Any) -> None:
    settings.AUTH_SIGNING_KEYS = ""
    settings.AUTH_REFRESH_SECRET = ""

    with pytest.raises(CommandError, match="Only the owner of the tables may erase"):
        Command().execute(skip_checks=False, force_color=False, no_color=False, every=None)


@pytest.mark.usefixtures("owner_connection")
def test_it_ends_at_the_signal_and_does_not_sleep_first(monkeypatch: pytest.MonkeyPatch) -> None:
    turns: list[int] = []

    def told_to_end(**_: Any) -> int:
        turns.append(len(turns))
        os.kill(os.getpid(), signal.SIGTERM)
        return 0

    def unhandled(*_: Any) -> None:
        raise AssertionError("the command leaves the signal to others")

    monkeypatch.setattr(deletion, "erase_due", told_to_end)
    before = signal.signal(signal.SIGTERM, unhandled)
    try:
        Command().handle(every=3600.0)
    finally:
        signal.signal(signal.SIGTERM, before)

    assert turns == [0]
