"""The Celery application: a doorbell for work whose record is a PostgreSQL row."""

import os
from typing import Any

from celery import Celery, signals
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


@signals.task_postrun.connect
def note_the_end(*, task: Any, state: str | None, **_: object) -> None:
    """Let those who watch know that beat, broker and worker have done a task."""
    lifesigns.note(task=task.name, state=state or "")


@signals.heartbeat_sent.connect
def worker_lives(**_: object) -> None:
    """Let the health check of this worker know that it is connected and not stuck."""
    lifesigns.touch()
