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
# A task's lines carry the id of the request that asked for it.
app.steps["worker"].add(DjangoStructLogInitStep)


@signals.setup_logging.connect
def leave_logging_alone(**_: object) -> None:
    """Keep the logging that the settings made; without a receiver Celery would put its own in its place."""


@signals.worker_process_init.connect
def keep_one_connection(**_: object) -> None:
    """
    Let this process of a worker, which does one thing at a time, keep one connection to the database.

    Otherwise a pool, with its threads, is opened and closed around every task. The connection is
    looked at before each task, because a failure of a task is answered to nobody who would repeat it.
    """
    for wrapper in connections.all():
        wrapper.settings_dict["OPTIONS"].pop("pool", None)
        wrapper.settings_dict |= {"CONN_MAX_AGE": None, "CONN_HEALTH_CHECKS": True}


@signals.task_prerun.connect
def look_at_connections(sender: Task[..., object], **_: object) -> None:
    """Have the connection that is kept checked when the task first uses it."""
    if not sender.request.is_eager:
        close_old_connections()


@signals.task_postrun.connect
def note_the_end(*, task: Any, state: str | None, **_: object) -> None:
    """Let those who watch know that beat, broker and worker have done a task."""
    lifesigns.note(task=task.name, state=state or "")


@signals.heartbeat_sent.connect
def worker_lives(**_: object) -> None:
    """Let the health check of this worker know that it is connected and not stuck."""
    lifesigns.touch()
