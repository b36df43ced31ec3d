"""A sweep in which nothing succeeds counts as failed; items that wait do not count."""

import pytest

from gateway.common.errors import PermissionDenied
from gateway.common.tasks import NothingSucceeded, Sweep


def _run(sweep: Sweep, *errors: Exception | None) -> None:
    for number, error in enumerate(errors):
        with sweep.item(number):
            if error is not None:
                raise error


def test_a_sweep_continues_after_a_failed_item() -> None:
    sweep = Sweep("invoice")
    _run(sweep, ValueError("a mistake"), None, PermissionDenied("not now"), None)
    assert sweep.succeeded == 2
    sweep.finish()


def test_a_sweep_without_any_success_counts_as_failed() -> None:
    sweep = Sweep("invoice")
    _run(sweep, ValueError("a mistake"), PermissionDenied("not now"))
    with pytest.raises(NothingSucceeded):
        sweep.finish()


def test_waiting_items_do_not_fail_the_sweep() -> None:
    sweep = Sweep("invoice")
    _run(sweep, PermissionDenied("not now"))
    sweep.finish()
