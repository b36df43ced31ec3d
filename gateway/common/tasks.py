"""
Messages to the workers, the heartbeats of periodic tasks, and sweeps over many items.

Work is stored as rows in PostgreSQL; a message only starts it earlier. If a message is lost, because the broker is
unavailable or the process dies after the commit, a periodic task finds the work. A message that cannot be sent is
therefore only logged, and never fails the caller.

Heartbeats are the times at which each periodic task last ended. They are kept in Redis, only for monitoring, and
each task's next run writes them again.

A sweep is a periodic task's run over many items, in which the error of one item does not end the run.
"""

import logging
import time
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from billiard.exceptions import SoftTimeLimitExceeded
from celery import current_app, states
from django.conf import settings
from django.db import InterfaceError, OperationalError, connection, transaction
from kombu.exceptions import OperationalError as BrokerError
from kombu.transport.redis import Channel
from redis.exceptions import RedisError

from gateway.common import redis_urls
from gateway.common.errors import DomainError, WorkersUnreachable
from gateway.common.leases import LeaseLost

logger = logging.getLogger(__name__)


def enqueue_on_commit(task_name: str, **ids: Any) -> None:
    """Send the task with keyword arguments `ids` once the outermost transaction commits."""
    transaction.on_commit(partial(_send, task_name, ids))


def enqueue_now(task_name: str, **ids: Any) -> None:
    """
    Send the task at once, for callers that must know whether it was sent. Call this outside any transaction.

    Raises:
        WorkersUnreachable: the broker is unavailable, so no worker gets the task.
    """
    try:
        current_app.send_task(task_name, kwargs=ids, retry=False)
    except BrokerError as error:
        raise WorkersUnreachable("No worker received the task. Retry in a minute.", retry_after=60) from error


def _send(task_name: str, ids: dict[str, Any]) -> None:
    try:
        current_app.send_task(task_name, kwargs=ids, retry=False)
    except BrokerError:
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
    """Return the heartbeats, in one round trip; None while Redis is unavailable or refuses writes."""
    names = list(queues)
    pipeline = redis_urls.text_client(settings.REDIS_URL).pipeline(transaction=False)
    pipeline.hset(_HEARTBEATS_KEY, _READ, time.time())
    pipeline.hgetall(_HEARTBEATS_KEY)
    for priority in Channel.priority_steps:
        for name in names:
            pipeline.llen(f"{name}{Channel.sep}{priority}" if priority else name)
    try:
        _, recorded, *lengths = pipeline.execute()
    except RedisError as error:
        logger.warning("the heartbeats cannot be read: %s", type(error).__name__)
        return None
    return Heartbeats(
        ended=_times_of(_ENDED, recorded),
        succeeded=_times_of(_SUCCEEDED, recorded),
        waiting={name: sum(lengths[number :: len(names)]) for number, name in enumerate(names)},
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


# Celery's soft time limit. Services must not catch it.
OutOfTime = SoftTimeLimitExceeded


class Item:
    """A context for one item of a run, which logs and suppresses most errors."""

    def __init__(self, what: str, expected: tuple[type[Exception], ...]) -> None:
        self._what, self._expected = what, expected
        self.succeeded = False
        # Whether the item ended with an unexpected error.
        self.failed = False

    def __enter__(self) -> "Item":
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> bool:
        if error is None:
            self.succeeded = True
        elif not isinstance(error, Exception) or _ends_the_run(error):
            return False
        elif isinstance(error, self._expected):
            logger.warning("%s is retried in the next run: %s", self._what, type(error).__name__)
        else:
            self.failed = True
            logger.error("%s failed; the run continues", self._what, exc_info=error)
        return True


def isolated(what: str, *, expected: tuple[type[Exception], ...] = ()) -> Item:
    """
    Log and suppress the error of one item, so that the run continues; the next run retries the item.

    Errors of the `expected` types are logged as warnings, others with their traceback.

    Raises:
        DomainError: with `is_outage`: a node or Stripe is unavailable for the other items too.
        OutOfTime: the task must stop.
        LeaseLost: another process has taken over the work.
        OperationalError, InterfaceError: the database is unavailable.
    """
    return Item(what, expected)


def _ends_the_run(error: Exception) -> bool:
    """
    Return whether the other items would fail too.

    Django raises the same class for a lost connection and for lock timeouts, deadlocks and statement timeouts, which
    affect only one item.
    """
    if isinstance(error, OperationalError | InterfaceError):
        return not connection.is_usable()
    return isinstance(error, OutOfTime | LeaseLost) or (isinstance(error, DomainError) and error.is_outage)


class NothingSucceeded(Exception):
    """Every item of a sweep failed, so the items are not the cause. Makes the task fail."""


class Sweep:
    """Runs many items in isolation. A `DomainError` counts neither as success nor as failure."""

    def __init__(self, noun: str) -> None:
        self.noun = noun
        self._items: list[Item] = []

    def item(self, identifier: object) -> Item:
        item = isolated(f"{self.noun} {identifier}", expected=(DomainError,))
        self._items.append(item)
        return item

    @property
    def succeeded(self) -> int:
        return sum(item.succeeded for item in self._items)

    def finish(self) -> None:
        """
        End the sweep.

        Raises:
            NothingSucceeded: at least one item failed with an unexpected error, and none succeeded.
        """
        failed = sum(item.failed for item in self._items)
        if failed and not self.succeeded:
            raise NothingSucceeded(f"{failed} of {failed}: {self.noun}")
