"""Periodic tasks leave a sign in Redis, and processes one on their disk."""

import logging
import random
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest
from celery import Celery, signals
from django.conf import settings as project
from pytest_django import Settings
from redis import Redis

from checkin import tasks as checkin_tasks
from credits import tasks as credits_tasks
from devstack.services.stack import Services
from gateway import metrics
from gateway.celery import Clock
from gateway.common import tasks
from tests.credits.rows import query
from tests.factories import UserFactory
from tests.portal.history_rows import earned

PERIODIC = sorted(tasks.scheduled_tasks())


@pytest.fixture
def redis(services: Services) -> Iterator[Redis]:
    """The broker, which knows no sign yet."""
    client = Redis.from_url(services.redis_url)
    lists = ("relay", "default", "default\x06\x166", "default\x06\x169")
    client.delete(tasks._HEARTBEATS_KEY, *lists)
    yield client
    client.delete(tasks._HEARTBEATS_KEY, *lists)


def figures() -> dict[tuple[str, ...], float]:
    return {
        (sample.name.removeprefix("gateway_"), *sample.labels.values()): sample.value
        for family in metrics.periodic_tasks()
        for sample in family.samples
    }


def ended(task: str, state: str) -> None:
    """Let the signal come that a worker gives."""
    signals.task_postrun.send(sender=None, task=SimpleNamespace(name=task), state=state)


def test_every_periodic_task_has_its_period(redis: Redis) -> None:
    gauges = figures()
    for entry in project.CELERY_BEAT_SCHEDULE.values():
        assert gauges["periodic_task_period_seconds", str(entry["task"])] > 0
    assert gauges["periodic_task_period_seconds", "payments.process_due_events"] == 10
    assert gauges["periodic_task_period_seconds", "credits.reconcile"] == 86_400


def test_success_updates_both_heartbeats_and_failure_only_the_end(redis: Redis) -> None:
    task, begun = random.choice(PERIODIC), time.time()
    ended(task, "FAILURE")
    gauges = figures()
    assert begun <= gauges["periodic_task_ended_timestamp_seconds", task] <= time.time()
    assert ("periodic_task_succeeded_timestamp_seconds", task) not in gauges

    ended(task, "SUCCESS")
    gauges = figures()
    succeeded = gauges["periodic_task_succeeded_timestamp_seconds", task]
    assert succeeded == gauges["periodic_task_ended_timestamp_seconds", task] >= begun

    ended(task, "FAILURE")
    assert figures()["periodic_task_succeeded_timestamp_seconds", task] == succeeded
    assert not any(
        key[1:] == (other,) for other in PERIODIC if other != task for key in figures() if "ed_t" in key[0]
    )


@pytest.mark.django_db
def test_a_task_that_celery_runs_has_a_heartbeat(redis: Redis) -> None:
    earned(UserFactory.create(), 1)
    query("UPDATE credits_account SET balance = balance + 1")
    checkin_tasks.keep_seeds.apply()
    credits_tasks.reconcile_ledger.apply()
    gauges = figures()
    assert ("periodic_task_succeeded_timestamp_seconds", "checkin.keep_seeds") in gauges
    assert ("periodic_task_ended_timestamp_seconds", "credits.reconcile") in gauges
    assert ("periodic_task_succeeded_timestamp_seconds", "credits.reconcile") not in gauges


def test_a_task_that_beat_does_not_schedule_has_no_heartbeat(redis: Redis) -> None:
    ended("payments.process_event", "SUCCESS")
    assert not redis.exists(tasks._HEARTBEATS_KEY)


def test_a_task_that_beat_schedules_no_more_is_forgotten(redis: Redis) -> None:
    redis.hset(tasks._HEARTBEATS_KEY, "ended relay.no-more", "1")
    assert not any("relay.no-more" in key for key in figures())


@contextmanager
def broker(services: Services) -> Iterator[Celery]:
    """Yield an app that sends and takes messages as the service does."""
    with Celery(broker=services.redis_url, set_as_current=False) as app:
        app.conf.task_routes = project.CELERY_TASK_ROUTES
        app.conf.task_default_queue = project.CELERY_TASK_DEFAULT_QUEUE
        yield app


def test_unconsumed_messages_are_counted(redis: Redis, services: Services) -> None:
    redis.rpush("relay", *(secrets.token_hex(4) for _ in range(3)))
    with broker(services) as app:
        for task in ("webhooks.deliver", "users.refresh_profile_card", "payments.top_up"):
            app.send_task(task)
    gauges = figures()
    assert (gauges["queue_messages", "relay"], gauges["queue_messages", "default"]) == (3, 3)
    assert gauges["redis_up",] == 1


def test_tasks_that_wait_for_other_peoples_servers_come_after_payments(
    redis: Redis, services: Services
) -> None:
    with broker(services) as app:
        for task in ("users.refresh_profile_card", "webhooks.collect", "payments.top_up"):
            app.send_task(task)
        with app.connection_for_read() as connection, connection.SimpleQueue("default") as queue:
            taken = [queue.get(timeout=60) for _ in range(3)]
            for message in taken:
                message.ack()
    assert [message.headers["task"] for message in taken] == [
        "payments.top_up",
        "webhooks.collect",
        "users.refresh_profile_card",
    ]


def test_without_redis_only_that_is_reported(settings: Settings, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, logger="gateway.common.tasks")
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    ended("earnings.release", "SUCCESS")
    gauges = figures()
    assert gauges["redis_up",] == 0
    assert {key[0] for key in gauges} == {"redis_up", "periodic_task_period_seconds"}
    assert [record.levelno for record in caplog.records] == [logging.WARNING] * 2


def test_a_worker_and_beat_renew_the_file_of_their_health_check(settings: Settings, tmp_path: Path) -> None:
    file = tmp_path / "alive"
    settings.ALIVE_FILE = str(file)
    signals.heartbeat_sent.send(sender=None)
    assert file.exists()
    file.unlink()

    quiet = Celery("tests", broker="memory://", set_as_current=False)
    clock = Clock(quiet, schedule_filename=str(tmp_path / "schedule"), lazy=True)
    clock.setup_schedule()
    clock.schedule.clear()
    clock.tick()
    clock.close()
    assert file.exists()


def test_without_a_file_configured_none_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    signals.heartbeat_sent.send(sender=None)
    assert list(tmp_path.iterdir()) == []
