"""Beat logs once that the broker is away, and remembers over its restart when tasks ran."""

import logging
import time
from collections.abc import Iterator
from typing import Any

import pytest
from celery import Celery
from celery.beat import ScheduleEntry
from celery.schedules import schedule
from kombu.exceptions import OperationalError
from pytest_django import Settings

from devstack.services.stack import Services
from gateway.celery import Clock, app
from gateway.common import tasks
from gateway.common.redis_urls import text_client


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


def test_tasks_that_were_due_before_a_restart_run_at_once_and_others_at_their_time(
    clock: Clock, services: Services, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[str] = []
    monkeypatch.setattr(clock, "apply_entry", lambda entry, producer: sent.append(entry.task))
    tasks_of = settings.CELERY_BEAT_SCHEDULE
    nightly, hourly, rarely = (
        tasks_of[name] for name in ("credits-reconcile", "users-purge", "payments-catch-up")
    )
    ages = {nightly["task"]: 86_400, hourly["task"]: 3_700, rarely["task"]: 1_800}
    redis, now = text_client(settings.REDIS_URL), time.time()
    redis.delete(tasks._HEARTBEATS_KEY)
    clock.update_from_dict({str(each["task"]): each for each in (nightly, hourly, rarely)})

    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    clock.tick()
    assert sent == []

    settings.REDIS_URL = services.redis_url
    redis.hset(tasks._HEARTBEATS_KEY, mapping={f"ended {task}": now - age for task, age in ages.items()})
    while clock.tick() == 0:
        """Send what is due."""
    assert sorted(sent) == sorted([nightly["task"], hourly["task"]])


def test_after_an_outage_beat_looks_again_at_what_was_missed(clock: Clock, sender: FakeSender) -> None:
    clock._has_recalled = True
    tick(clock)
    assert clock._has_recalled
    sender.fault = OperationalError("Error 111 connecting to 127.0.0.1")
    tick(clock)
    sender.fault = None
    tick(clock)
    assert not clock._has_recalled


def test_beat_runs_by_this_clock() -> None:
    assert app.conf.beat_scheduler == "gateway.celery:Clock"
