"""
Messages to the workers, and the heartbeats of periodic tasks.

The work is in rows of PostgreSQL; a message only starts it earlier. If a message is lost, because the broker is
unavailable or the process dies after the commit, a periodic task finds the work. So a message that cannot be sent is
logged and never fails the caller.

Heartbeats are the times at which each periodic task last ended. They are kept in Redis for
monitoring; nothing depends on them, and each task's next run writes them again.
"""

import logging
import time
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from celery import current_app, states
from django.conf import settings
from django.db import transaction
from kombu.exceptions import OperationalError
from redis.exceptions import RedisError

from gateway.common import redis_urls
from gateway.common.errors import WorkersUnreachable

logger = logging.getLogger(__name__)


def enqueue_on_commit(task_name: str, **ids: Any) -> None:
    """Send the task with keyword arguments `ids` once the outermost transaction commits."""
    transaction.on_commit(partial(_send, task_name, ids))


def enqueue_now(task_name: str, **ids: Any) -> None:
    """
    Send the task at once, for a caller who must know whether it was sent. Call it outside transactions.

    Raises:
        WorkersUnreachable: the broker is unavailable, so no worker gets the task.
    """
    try:
        current_app.send_task(task_name, kwargs=ids, retry=False)
    except OperationalError as error:
        raise WorkersUnreachable("No worker received the task. Retry in a minute.", retry_after=60) from error


def _send(task_name: str, ids: dict[str, Any]) -> None:
    try:
        current_app.send_task(task_name, kwargs=ids, retry=False)
    except OperationalError:
        logger.warning("broker unavailable, task left to the sweep: %s", task_name)


_HEARTBEATS_KEY = "gateway:periodic-tasks"
_ENDED, _SUCCEEDED, _READ = "ended", "succeeded", "read"


@dataclass(frozen=True, kw_only=True)
class Heartbeats:
    """The unix seconds of each task's last end and last success, and the messages waiting in each queue."""

    ended: dict[str, float]
    succeeded: dict[str, float]
    waiting: dict[str, int]


def scheduled_tasks() -> set[str]:
    return {str(entry["task"]) for entry in settings.CELERY_BEAT_SCHEDULE.values()}


def record_heartbeat(*, task: str, state: str) -> None:
    """
    Record that a task has just ended.

    Tasks that beat does not schedule are ignored. Errors of Redis are logged.
    """
    if task not in scheduled_tasks():
        return
    now = time.time()
    times = {f"{_ENDED} {task}": now}
    if state == states.SUCCESS:
        times[f"{_SUCCEEDED} {task}"] = now
    try:
        redis_urls.text_client(settings.REDIS_URL).hset(_HEARTBEATS_KEY, mapping=times)
    except RedisError as error:
        logger.warning("the end of %s cannot be recorded: %s", task, type(error).__name__)


def read_heartbeats(*, queues: Iterable[str]) -> Heartbeats | None:
    """Return the heartbeats, in one round trip; None while Redis is unavailable or takes no writes."""
    names = list(queues)
    pipeline = redis_urls.text_client(settings.REDIS_URL).pipeline(transaction=False)
    pipeline.hset(_HEARTBEATS_KEY, _READ, time.time())
    pipeline.hgetall(_HEARTBEATS_KEY)
    for name in names:
        pipeline.llen(name)
    try:
        _, recorded, *waiting = pipeline.execute()
    except RedisError as error:
        logger.warning("the heartbeats cannot be read: %s", type(error).__name__)
        return None
    return Heartbeats(
        ended=_times_of(_ENDED, recorded),
        succeeded=_times_of(_SUCCEEDED, recorded),
        waiting=dict(zip(names, waiting, strict=True)),
    )


def touch_alive_file() -> None:
    """Touch the file that the container's health check reads, if one is configured."""
    if settings.ALIVE_FILE:
        Path(settings.ALIVE_FILE).touch()


def _times_of(what: str, recorded: dict[str, str]) -> dict[str, float]:
    return {
        task: float(recorded[key])
        for task in sorted(scheduled_tasks())
        if (key := f"{what} {task}") in recorded
    }
