"""
Signs of life of workers and beat: when each periodic task last ended.

They are kept in Redis for monitoring; nothing depends on them. If Redis loses them, each
task's next run writes them again.
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
    """The unix seconds of each task's last end and last success, and the messages waiting in each queue."""

    ended: dict[str, float]
    succeeded: dict[str, float]
    waiting: dict[str, int]


def scheduled() -> set[str]:
    """Return the names of the tasks that beat schedules."""
    return {str(entry["task"]) for entry in settings.CELERY_BEAT_SCHEDULE.values()}


def note(*, task: str, state: str) -> None:
    """
    Write down that a task has just ended.

    Tasks that beat does not schedule are ignored. If Redis is away, that is logged.
    """
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
    """Renew the file that the container's health check looks at, if one is configured."""
    if settings.ALIVE_FILE:
        Path(settings.ALIVE_FILE).touch()


def _of(what: str, noted: dict[str, str]) -> dict[str, float]:
    """Return the moments of tasks that beat still schedules."""
    return {task: float(noted[key]) for task in sorted(scheduled()) if (key := f"{what} {task}") in noted}


@functools.cache
def _redis(url: str) -> Any:
    return Redis.from_url(url, decode_responses=True, socket_timeout=0.5, socket_connect_timeout=0.5)
