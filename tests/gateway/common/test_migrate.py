"""`manage.py migrate` gives way to transactions that use a table."""

from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.commands import migrate
from django.db import OperationalError, connection
from psycopg.errors import LockNotAvailable, UniqueViolation

from gateway.common.management.commands import migrate as ours

pytestmark = pytest.mark.django_db


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The lock timeouts with which migrations were run; the first one fails."""
    monkeypatch.setattr(ours, "PAUSE_SECONDS", 0)
    timeouts: list[str] = []

    def handle(*_: Any, **__: Any) -> None:
        timeouts.append(_timeout())
        if len(timeouts) == 1:
            raise OperationalError from LockNotAvailable()

    monkeypatch.setattr(migrate.Command, "handle", handle)
    return timeouts


def test_a_migration_that_gets_no_lock_within_a_second_is_tried_again(runs: list[str]) -> None:
    before, errors = _timeout(), StringIO()
    call_command("migrate", stderr=errors)
    assert runs == ["1s", "1s"]
    assert "A table is in use" in errors.getvalue()
    assert _timeout() == before


def test_any_other_error_ends_it(runs: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        runs.append(_timeout())
        raise OperationalError from UniqueViolation()

    monkeypatch.setattr(migrate.Command, "handle", fail)
    with pytest.raises(OperationalError):
        call_command("migrate")
    assert runs == ["1s"]


def _timeout() -> str:
    with connection.cursor() as cursor:
        cursor.execute("SHOW lock_timeout")
        return str(cursor.fetchone()[0])
