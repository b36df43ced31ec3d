"""
Ring a worker's bell after the transaction has committed.

PostgreSQL holds the work; the message only says that there is some. If a message is
lost, because the broker is away or the process dies after the commit, the sweeps that
beat runs find the work. So a failed ring is logged and never fails the caller.

Bells that ring once: one message covers all events of a moment.

A bell is a key in Redis. Whoever sets it sends the message; while it is set, nobody
else does. The task removes it *before* it reads its rows, so it reads every event that
was committed before, and an event committed later rings again. If a message is lost or
Redis is away, the sweeps of beat find the work.
"""

import functools
import logging
from functools import partial
from typing import Any

from celery import current_app
from django.conf import settings
from django.db import transaction
from kombu.exceptions import OperationalError
from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as ConnectionLost
from redis.exceptions import RedisError
from redis.retry import Retry

from gateway.common.errors import WorkersUnreachable


def enqueue_on_commit(task_name: str, **ids: Any) -> None:
    """Send the task with keyword arguments `ids` once the outermost transaction commits."""
    transaction.on_commit(partial(_ring, task_name, ids))


def ring_on_commit(task_name: str) -> None:
    """Send the task once the outermost transaction commits, unless an earlier message still waits."""
    transaction.on_commit(partial(_ring_once, task_name))


def _ring_once(task_name: str) -> None:
    if is_first(task_name):
        _ring(task_name, {})


def enqueue_now(task_name: str, **ids: Any) -> None:
    """
    Send the task at once, for a caller who must know whether it was sent. Call it outside transactions.

    Raises:
        WorkersUnreachable: the broker is away, so no worker gets the task.
    """
    try:
        current_app.send_task(task_name, kwargs=ids, retry=False)
    except OperationalError as error:
        raise WorkersUnreachable("No worker could be asked. Repeat in a minute.", retry_after=60) from error


def _ring(task_name: str, ids: dict[str, Any]) -> None:
    try:
        current_app.send_task(task_name, kwargs=ids, retry=False)
    except OperationalError:
        logger.warning("broker away, left to the sweep: %s", task_name)


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
