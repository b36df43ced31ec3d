"""The gauges of webhooks: waiting and failed messages, and failing endpoints."""

from collections.abc import Iterator

from prometheus_client.core import Metric

from gateway.common.metrics import gauge, register
from webhooks import queries


@register
def webhooks() -> Iterator[Metric]:
    """Yield the state of all webhooks, in one statement."""
    counts = queries.delivery_counts()
    yield gauge(
        "webhooks_waiting", "Messages that wait to be delivered to enabled endpoints.", counts.waiting
    )
    yield gauge(
        "webhooks_overdue_seconds",
        "Delay of the message that has been due longest; 0 if none is due.",
        counts.overdue_age,
    )
    yield gauge(
        "webhooks_given_up_in_last_day",
        "Messages of the last 24 hours that were given up.",
        counts.given_up_in_last_day,
    )
    yield gauge("webhooks_endpoints_failing", "Endpoints whose last attempt failed.", counts.failing)
    yield gauge(
        "webhooks_endpoints_disabled",
        "Endpoints that were disabled because they returned 410 or kept failing.",
        counts.disabled,
    )
