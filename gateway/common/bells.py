"""
Bells that ring once: one message covers all events of a moment.

A bell is a key in Redis. Whoever sets it sends the message; while it is set, nobody
else does. The task removes it *before* it reads its rows, so it reads every event that
was committed before, and an event committed later rings again. If a message is lost or
Redis is away, the sweeps of beat find the work.
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

# How long the bell stays silent if the message is lost.
_RINGS_MILLISECONDS = 3_000


def is_first(task_name: str) -> bool:
    """Return whether the caller should send the task's message; while Redis is away there is nobody to send it to."""
    try:
        return bool(_redis(settings.REDIS_URL).set(_key(task_name), 1, nx=True, px=_RINGS_MILLISECONDS))
    except RedisError:
        logger.warning("broker away, left to the sweep: %s", task_name)
        return False


def answer(task_name: str) -> None:
    """Let the next event ring the bell again. The task calls this before it reads its rows."""
    try:
        _redis(settings.REDIS_URL).delete(_key(task_name))
    except RedisError:
        logger.warning("the bell of %s rings again in a while only", task_name)


def _key(task_name: str) -> str:
    return f"gateway:bell:{task_name}"


@functools.cache
def _redis(url: str) -> Redis:
    # A connection that was closed while idle is opened again; a timeout is not repeated.
    retry = Retry(NoBackoff(), 1, supported_errors=(ConnectionLost,))
    return Redis.from_url(url, socket_timeout=2, socket_connect_timeout=0.5, retry=retry)
