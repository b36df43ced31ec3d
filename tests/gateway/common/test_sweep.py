"""A sweep: an item that fails holds up no other, and a sweep in which nothing succeeds counts as failed."""

import pytest
from billiard.exceptions import SoftTimeLimitExceeded

from gateway.common.db import NothingSucceeded, OutOfTime, Sweep
from gateway.common.errors import DomainError


class Refused(DomainError):
    code, title, status = "refused", "Refused", 409


class Unreachable(DomainError):
    code, title, status = "unreachable", "Unreachable", 503


def _run(sweep: Sweep, *errors: Exception | None) -> None:
    for number, error in enumerate(errors):
        with sweep.item(number):
            if error is not None:
                raise error


def test_items_that_fail_are_logged_and_the_others_are_done(caplog: pytest.LogCaptureFixture) -> None:
    sweep = Sweep("invoice")
    _run(sweep, ValueError("a mistake"), None, Refused("not now"), None)
    assert (sweep.succeeded, sweep.failed) == (2, 1)
    assert [record.getMessage() for record in caplog.records] == [
        "invoice 0 failed",
        "invoice 2 waits: refused",
    ]
    sweep.finish()


def test_a_sweep_in_which_nothing_succeeds_counts_as_failed() -> None:
    sweep = Sweep("invoice")
    _run(sweep, ValueError("a mistake"), Refused("not now"))
    with pytest.raises(NothingSucceeded):
        sweep.finish()


def test_items_that_wait_are_no_failure_of_the_sweep() -> None:
    sweep = Sweep("invoice")
    _run(sweep, Refused("not now"))
    sweep.finish()


@pytest.mark.parametrize(
    ("error", "kind"), [(Unreachable("away"), Unreachable), (SoftTimeLimitExceeded(), OutOfTime)]
)
def test_an_error_that_meets_every_item_ends_the_sweep(error: Exception, kind: type[Exception]) -> None:
    sweep = Sweep("invoice", stop_on=Unreachable)
    with pytest.raises(kind):
        _run(sweep, None, error, None)
    assert (sweep.succeeded, sweep.failed) == (1, 0)
