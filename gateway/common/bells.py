"""
Bells that ring once: of many events in a moment, one message tells.

A bell is a key in Redis. Whoever sets it sends the message; while it is set, nobody
else does. The task takes it away *before* it reads its rows, so an event that
committed before is read by this task, and one that commits later rings again. What a
lost message or a Redis that is away leaves behind, the sweeps of beat pick up.
"""

import functools
import logging

from django.conf import settings
from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as ConnectionLost
from redis.exceptions import RedisError
from redis.retry import Retry

logger = logging.getLogger(__name__)

# If the message is lost, the bell is silent for so long.
_RINGS_MILLISECONDS = 3_000


def is_first(task_name: str) -> bool:
    """Return whether the caller is to send the task's message; with Redis away there is nobody to send it to."""
    try:
        return bool(_redis(settings.REDIS_URL).set(_key(task_name), 1, nx=True, px=_RINGS_MILLISECONDS))
    except RedisError:
        logger.warning("broker away, left to the sweep: %s", task_name)
        return False


def answer(task_name: str) -> None:
    """Let the bell ring again for what happens from now on. The task calls it before it reads its rows."""
    try:
        _redis(settings.REDIS_URL).delete(_key(task_name))
    except RedisError:
        logger.warning("the bell of %s rings again in a while only", task_name)


def _key(task_name: str) -> str:
    return f"gateway:bell:{task_name}"


@functools.cache
def _redis(url: str) -> Redis:
    # A connection that was closed while it lay idle is opened anew; one that stands still is not waited for twice.
    retry = Retry(NoBackoff(), 1, supported_errors=(ConnectionLost,))
    return Redis.from_url(url, socket_timeout=2, socket_connect_timeout=0.5, retry=retry)
