"""An error of one item does not stop the others of a run; an error that would stop them all ends it."""

from pathlib import Path

import pytest
from django.db import OperationalError, connection

from gateway.chain.errors import NodeUnavailable
from gateway.common.db import OutOfTime
from relay.services.isolation import isolated
from tests.credits.rows import query


@pytest.mark.django_db
def test_an_error_of_one_item_is_logged_and_the_run_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    with isolated("settlement of a call"):
        int("no such call")
    assert "settlement of a call failed; the others go on" in caplog.text
    assert "no such call" in caplog.text


@pytest.mark.django_db(transaction=True)
def test_a_statement_that_takes_too_long_is_an_error_of_one_item(caplog: pytest.LogCaptureFixture) -> None:
    query("SET statement_timeout = 100")
    try:
        with isolated("settlement of a call"):
            query("SELECT pg_sleep(30)")
    finally:
        query("RESET statement_timeout")
    assert "the others go on" in caplog.text


@pytest.mark.django_db
@pytest.mark.parametrize("error", [NodeUnavailable("No node answers."), OutOfTime()])
def test_what_would_stop_the_others_too_ends_the_run(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(type(error)), isolated("settlement of a call"):
        raise error
    assert "the others go on" not in caplog.text


@pytest.mark.django_db(transaction=True)
def test_without_a_database_the_run_ends(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    connection.close()
    monkeypatch.setitem(connection.settings_dict, "HOST", str(tmp_path))
    with pytest.raises(OperationalError), isolated("settlement of a call"):
        query("SELECT 1")
    monkeypatch.undo()
    assert "the others go on" not in caplog.text
