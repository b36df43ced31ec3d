"""Figures of beat, the workers and the messages between them."""

from collections.abc import Iterator
from typing import Any

from celery.schedules import crontab
from django.conf import settings
from prometheus_client.core import Metric

from gateway import lifesigns
from gateway.metrics.families import gauge, gauges

_QUEUES = ("relay", "default")
_DAY = 86_400.0


def periodic_tasks() -> Iterator[Metric]:
    """Yield what Redis holds, in one round trip; while it is away, yield only that."""
    yield gauges(
        "periodic_task_period_seconds",
        "How often beat rings the task.",
        "task",
        {str(entry["task"]): _period(entry["schedule"]) for entry in settings.CELERY_BEAT_SCHEDULE.values()},
    )
    found = lifesigns.read(queues=_QUEUES)
    yield gauge("redis_up", "1 where Redis answered just now.", found is not None)
    if found is None:
        return
    yield gauges(
        "periodic_task_ended_timestamp_seconds",
        "When the task last ended, however it did, in unix seconds.",
        "task",
        found.ended,
    )
    yield gauges(
        "periodic_task_succeeded_timestamp_seconds",
        "When the task last ended without an error, in unix seconds.",
        "task",
        found.succeeded,
    )
    yield gauges("queue_messages", "Messages that no worker has taken yet.", "queue", found.waiting)


def _period(schedule: Any) -> float:
    """Return the seconds between two runs. A task at a fixed time runs once a day here."""
    return _DAY if isinstance(schedule, crontab) else float(schedule)
