"""The Celery application: a doorbell for work whose record is a PostgreSQL row."""

import os

from celery import Celery, signals
from django_structlog.celery.steps import DjangoStructLogInitStep

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "gateway.settings")

app = Celery("gateway")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
# A task's lines carry the id of the request that asked for it.
app.steps["worker"].add(DjangoStructLogInitStep)


@signals.setup_logging.connect
def leave_logging_alone(**_: object) -> None:
    """Keep the logging that the settings made; without a receiver Celery would put its own in its place."""
