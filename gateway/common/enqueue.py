"""
Ring a worker's bell after the transaction has committed.

PostgreSQL holds the work; the message only says that there is some. If a message is
lost, because the broker is away or the process dies after the commit, the sweeps that
beat runs find the work. So a failed ring is logged and never fails the caller.
"""

import logging
from functools import partial
from typing import Any

from celery import current_app
from django.db import transaction
from kombu.exceptions import OperationalError

from gateway.common import bells
from gateway.common.errors import WorkersUnreachable

logger = logging.getLogger(__name__)


def enqueue_on_commit(task_name: str, **ids: Any) -> None:
    """Send the task with keyword arguments `ids` once the outermost transaction commits."""
    transaction.on_commit(partial(_ring, task_name, ids))


def ring_on_commit(task_name: str) -> None:
    """Send the task once the outermost transaction commits, unless an earlier message still waits."""
    transaction.on_commit(partial(_ring_once, task_name))


def _ring_once(task_name: str) -> None:
    if bells.is_first(task_name):
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
