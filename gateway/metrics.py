"""
GET /metrics, for a Prometheus server that has the token.

The gauges come from the collectors that the apps register; those of beat, the workers and the
messages between them are here.
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
from gateway.common.errors import NotAuthenticated, NotFound
from gateway.common.metrics import gauge, gauges, register

_QUEUES = ("relay", "default")
_DAY = 86_400.0


@register
def differing_functions() -> Iterator[Metric]:
    """Yield how the database compares with the code of this process, in one statement."""
    yield gauge(
        "sql_functions_differing",
        "Functions that the database lacks, or has with another definition than the code.",
        len(sql_functions.differing()),
    )


@register
def periodic_tasks() -> Iterator[Metric]:
    """Yield what Redis holds, in one round trip; while it is away, yield only that."""
    yield gauges(
        "periodic_task_period_seconds",
        "How often beat sends the task.",
        "task",
        {str(entry["task"]): _period(entry["schedule"]) for entry in settings.CELERY_BEAT_SCHEDULE.values()},
    )
    recorded = tasks.read_heartbeats(queues=_QUEUES)
    yield gauge("redis_up", "1 where Redis answered just now.", recorded is not None)
    if recorded is None:
        return
    yield gauges(
        "periodic_task_ended_timestamp_seconds",
        "When the task last ended, however it did, in unix seconds.",
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
    """Return the seconds between two runs. A task at a fixed time runs once a day here."""
    return _DAY if isinstance(schedule, crontab) else float(schedule)


class _Registered(Collector):
    def collect(self) -> Iterator[Metric]:
        yield from metrics.collect()


def exposition() -> bytes:
    return generate_latest(_Registered())


class MetricsView(APIView):
    """
    The service's gauges, for the operator only; without METRICS_TOKEN the page answers 404.

    The OpenAPI document does not describe this view.
    """

    schema = None
    authentication_classes = ()
    permission_classes = (AllowAny,)

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Check the token before anything else, even the method."""
        if not settings.METRICS_TOKENS:
            raise NotFound("There is nothing at this address.")
        if not _is_token(request.headers.get("Authorization", "")):
            raise NotAuthenticated("This address needs the header Authorization: Bearer <METRICS_TOKEN>.")
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
