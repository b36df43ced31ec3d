"""An item of a run that fails leaves the others alone; an error that all of them would meet ends the run."""

from pathlib import Path

import pytest
from django.db import OperationalError, connection

from gateway.chain.errors import NodeUnavailable
from gateway.common.tasks import OutOfTime, isolated
from payments.errors import BillingUnavailable, RateMissing
from tests.credits.rows import query


@pytest.mark.django_db
def test_an_error_of_one_item_is_logged_and_the_run_continues(caplog: pytest.LogCaptureFixture) -> None:
    with isolated("settlement of a call") as item:
        int("no such call")
    assert (item.succeeded, item.failed) == (False, True)
    assert "settlement of a call failed; the run continues" in caplog.text
    assert "no such call" in caplog.text


def test_an_expected_error_is_a_warning_and_no_failure(caplog: pytest.LogCaptureFixture) -> None:
    with isolated("the payout", expected=(RateMissing,)) as item:
        _refuse()
    assert (item.succeeded, item.failed) == (False, False)
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "the payout is retried in the next run: RateMissing" in caplog.text


def _refuse() -> None:
    raise RateMissing("There is no rate for EUR.")


def test_an_item_without_an_error_has_succeeded(caplog: pytest.LogCaptureFixture) -> None:
    with isolated("settlement of a call") as item:
        int("1")
    assert (item.succeeded, item.failed) == (True, False)
    assert not caplog.records


@pytest.mark.django_db(transaction=True)
def test_a_statement_that_takes_too_long_is_an_error_of_one_item(caplog: pytest.LogCaptureFixture) -> None:
    query("SET statement_timeout = 100")
    try:
        with isolated("settlement of a call"):
            query("SELECT pg_sleep(30)")
    finally:
        query("RESET statement_timeout")
    assert "the run continues" in caplog.text


@pytest.mark.django_db
@pytest.mark.parametrize(
    "error",
    [NodeUnavailable("No node responds."), BillingUnavailable("Stripe does not respond."), OutOfTime()],
)
def test_an_error_that_all_items_would_meet_ends_the_run(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(type(error)), isolated("settlement of a call", expected=(Exception,)):
        raise error
    assert not caplog.records


@pytest.mark.django_db(transaction=True)
def test_without_a_database_the_run_ends(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    connection.close()
    monkeypatch.setitem(connection.settings_dict, "HOST", str(tmp_path))
    with pytest.raises(OperationalError), isolated("settlement of a call"):
        query("SELECT 1")
    monkeypatch.undo()
    assert "the run continues" not in caplog.text
