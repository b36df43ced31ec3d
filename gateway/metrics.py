"""
GET /metrics, for a Prometheus server that has the token.

The apps register collectors for their gauges; this module has those of beat, the workers and the broker.
"""

import hmac
from collections.abc import Iterator
from typing import Any

from celery.schedules import crontab
from django.conf import settings
from django.http import HttpResponse
from prometheus_client import generate_latest
from prometheus_client.core import Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.registry import Collector
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.views import APIView

from gateway.common import metrics, sql_functions, tasks
from gateway.common.db import only_row
from gateway.common.errors import NotAuthenticated, NotFound
from gateway.common.metrics import gauge, gauges, register

_QUEUES = ("relay", "default")
_DAY = 86_400.0


@register
def differing_functions() -> Iterator[Metric]:
    """Yield the number of database functions that differ from this process's code, in one statement."""
    yield gauge(
        "sql_functions_differing",
        "Functions that are missing in the database or differ from the code.",
        len(sql_functions.differing()),
    )


@register
def database() -> Iterator[Metric]:
    """Yield whether the primary accepts writes, in one statement."""
    (is_writable,) = only_row("SELECT current_setting('transaction_read_only') = 'off'", {})
    yield gauge("database_writable", "Whether PostgreSQL takes writes (1) or not (0).", is_writable)


@register
def periodic_tasks() -> Iterator[Metric]:
    """Yield the gauges stored in Redis, in one round trip; while Redis is unavailable, only the gauge that shows it."""
    yield gauges(
        "periodic_task_period_seconds",
        "Seconds between two runs of the task.",
        "task",
        {str(entry["task"]): _period(entry["schedule"]) for entry in settings.CELERY_BEAT_SCHEDULE.values()},
    )
    recorded = tasks.read_heartbeats(queues=_QUEUES)
    yield gauge("redis_up", "Whether Redis took a write (1) or not (0).", recorded is not None)
    if recorded is None:
        return
    yield gauges(
        "periodic_task_ended_timestamp_seconds",
        "When the task last ended, with or without an error, in unix seconds.",
        "task",
        recorded.ended,
    )
    yield gauges(
        "periodic_task_succeeded_timestamp_seconds",
        "When the task last ended without an error, in unix seconds.",
        "task",
        recorded.succeeded,
    )
    yield gauges("queue_messages", "Messages that no worker has taken yet.", "queue", recorded.waiting)


def _period(schedule: Any) -> float:
    """Return the seconds between two runs; tasks at a fixed time run once a day."""
    return _DAY if isinstance(schedule, crontab) else float(schedule)


class _Registered(Collector):
    def collect(self) -> Iterator[Metric]:
        yield from metrics.collect()


def exposition() -> bytes:
    return generate_latest(_Registered())


class MetricsView(APIView):
    """
    The service's metrics, for the operator only; 404 if METRICS_TOKEN is not set.

    The OpenAPI document does not describe this view.
    """

    schema = None
    authentication_classes = ()
    permission_classes = (AllowAny,)

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Check the token first, even before the method."""
        if not settings.METRICS_TOKENS:
            raise NotFound("There is nothing at this address.")
        if not _is_token(request.headers.get("Authorization", "")):
            raise NotAuthenticated("Send the header Authorization: Bearer <METRICS_TOKEN>.")
        super().initial(request, *args, **kwargs)

    def get(self, request: Request) -> HttpResponse:
        return HttpResponse(
            exposition(), content_type=CONTENT_TYPE_PLAIN_0_0_4, headers={"Cache-Control": "no-store"}
        )


def _is_token(header: str) -> bool:
    scheme, _, text = header.partition(" ")
    given = text.strip().encode()
    matches = [hmac.compare_digest(given, token.encode()) for token in settings.METRICS_TOKENS]
    return scheme.lower() == "bearer" and any(matches)
