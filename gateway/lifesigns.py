"""
Signs of life of workers and beat: when each periodic task last came to its end.

They are kept in Redis, for whoever watches the service; nothing is decided by them. A
Redis that lost them knows them again after each task's next run.
"""

import functools
import logging
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from celery import states
from django.conf import settings
from redis import Redis
from redis.exceptions import RedisError

logger = logging.getLogger(__name__)
_KEY = "gateway:periodic-tasks"
_ENDED, _SUCCEEDED = "ended", "succeeded"


@dataclass(frozen=True, kw_only=True)
class Signs:
    """Unix seconds by task of its last end and its last success, and the messages that wait in each queue."""

    ended: dict[str, float]
    succeeded: dict[str, float]
    waiting: dict[str, int]


def scheduled() -> set[str]:
    """Return the names of the tasks that beat rings."""
    return {str(entry["task"]) for entry in settings.CELERY_BEAT_SCHEDULE.values()}


def note(*, task: str, state: str) -> None:
    """Write down that a task has just ended; one that beat does not ring is nobody's sign. A loss is logged."""
    if task not in scheduled():
        return
    moment = time.time()
    signs = {f"{_ENDED} {task}": moment}
    if state == states.SUCCESS:
        signs[f"{_SUCCEEDED} {task}"] = moment
    try:
        _redis(settings.REDIS_URL).hset(_KEY, mapping=signs)
    except RedisError as error:
        logger.warning("the end of %s cannot be noted: %s", task, type(error).__name__)


def read(*, queues: Iterable[str]) -> Signs | None:
    """Return the signs, in one round trip; None while Redis is away."""
    names = list(queues)
    pipeline = _redis(settings.REDIS_URL).pipeline(transaction=False)
    pipeline.hgetall(_KEY)
    for name in names:
        pipeline.llen(name)
    try:
        noted, *waiting = pipeline.execute()
    except RedisError as error:
        logger.warning("the signs of life cannot be read: %s", type(error).__name__)
        return None
    return Signs(
        ended=_of(_ENDED, noted),
        succeeded=_of(_SUCCEEDED, noted),
        waiting=dict(zip(names, waiting, strict=True)),
    )


def touch() -> None:
    """Renew the file by which the container's health check knows this process; nothing where none is configured."""
    if settings.ALIVE_FILE:
        Path(settings.ALIVE_FILE).touch()


def _of(what: str, noted: dict[str, str]) -> dict[str, float]:
    """Return the moments of tasks that beat still rings."""
    return {task: float(noted[key]) for task in sorted(scheduled()) if (key := f"{what} {task}") in noted}


@functools.cache
def _redis(url: str) -> Any:
    return Redis.from_url(url, decode_responses=True, socket_timeout=0.5, socket_connect_timeout=0.5)
