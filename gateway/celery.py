"""The Celery application: a doorbell for work whose record is a PostgreSQL row."""

import os
from typing import Any

from celery import Celery, Task, signals
from django.db import close_old_connections, connections
from django_structlog.celery.steps import DjangoStructLogInitStep

from gateway import lifesigns

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "gateway.settings")

app = Celery("gateway")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
# A task's log lines carry the id of the request that asked for it.
app.steps["worker"].add(DjangoStructLogInitStep)


@signals.setup_logging.connect
def leave_logging_alone(**_: object) -> None:
    """Keep the logging of the settings; without a receiver Celery would replace it with its own."""


@signals.worker_process_init.connect
def keep_one_connection(**_: object) -> None:
    """
    Keep one connection to the database in this worker process, which does one thing at a time.

    Otherwise a pool, with its threads, would be opened and closed around every task. The connection
    is checked before each task, because nobody waits for a task who could repeat it.
    """
    for wrapper in connections.all():
        wrapper.settings_dict["OPTIONS"].pop("pool", None)
        wrapper.settings_dict |= {"CONN_MAX_AGE": None, "CONN_HEALTH_CHECKS": True}


@signals.task_prerun.connect
def look_at_connections(sender: Task[..., object], **_: object) -> None:
    """Have the kept connection checked when the task first uses it."""
    if not sender.request.is_eager:
        close_old_connections()


@signals.task_postrun.connect
def note_the_end(*, task: Any, state: str | None, **_: object) -> None:
    """Note for monitoring that beat, broker and worker have done a task."""
    lifesigns.note(task=task.name, state=state or "")


@signals.heartbeat_sent.connect
def worker_lives(**_: object) -> None:
    """Show the health check of this worker that it is connected and not stuck."""
    lifesigns.touch()
