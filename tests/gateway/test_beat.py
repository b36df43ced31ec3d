"""Beat logs once that the broker is away."""

import logging
from collections.abc import Iterator
from typing import Any

import pytest
from celery import Celery
from celery.beat import ScheduleEntry
from celery.schedules import schedule
from kombu.exceptions import OperationalError

from gateway.celery import Clock, app


class FakeSender:
    """Counts the tasks that the scheduler sends; raises the fault that a test gives it."""

    def __init__(self) -> None:
        self.fault: Exception | None = None
        self.sent = 0

    def __call__(self, *args: Any, **options: Any) -> None:
        if self.fault is not None:
            raise self.fault
        self.sent += 1


@pytest.fixture
def sender() -> FakeSender:
    """What the scheduler sends tasks with."""
    return FakeSender()


@pytest.fixture
def clock(sender: FakeSender, tmp_path: Any) -> Iterator[Clock]:
    """A scheduler without tasks of its own."""
    quiet = Celery("tests", broker="memory://", set_as_current=False)
    scheduler = Clock(quiet, schedule_filename=str(tmp_path / "schedule"), lazy=True)
    scheduler.setup_schedule()
    scheduler.send_task = sender  # type: ignore[method-assign]
    yield scheduler
    scheduler.close()


def tick(clock: Clock) -> None:
    clock.apply_entry(
        ScheduleEntry(
            name="earnings-release", task="tests.sent_by_name", schedule=schedule(1.0), app=clock.app
        )
    )


def lines(caplog: pytest.LogCaptureFixture) -> list[tuple[int, bool]]:
    """Return the level of each line, and whether a trace hangs on it."""
    return [(record.levelno, record.exc_info is not None) for record in caplog.records]


def test_an_outage_is_logged_when_it_begins_and_when_it_ends(
    clock: Clock, sender: FakeSender, caplog: pytest.LogCaptureFixture
) -> None:
    tick(clock)
    sender.fault = OperationalError("Error 111 connecting to 127.0.0.1")
    for _ in range(5):
        tick(clock)
    assert lines(caplog) == [(logging.WARNING, False)]
    sender.fault = None
    tick(clock)
    tick(clock)
    assert lines(caplog) == [(logging.WARNING, False)] * 2
    assert sender.sent == 3


def test_another_fault_is_logged_in_full_every_time(
    clock: Clock, sender: FakeSender, caplog: pytest.LogCaptureFixture
) -> None:
    sender.fault = TypeError("no such option")
    tick(clock)
    tick(clock)
    assert lines(caplog) == [(logging.ERROR, True)] * 2


def test_beat_runs_by_this_clock() -> None:
    assert app.conf.beat_scheduler == "gateway.celery:Clock"
