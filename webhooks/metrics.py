"""The gauges of webhooks: what waits, what was given up, and which endpoints take nothing."""

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
        "Since the message that is due longest could have been sent; 0 where none is due.",
        counts.overdue_age,
    )
    yield gauge(
        "webhooks_given_up_in_last_day",
        "Messages of the last 24 hours that no attempt delivered.",
        counts.given_up_in_last_day,
    )
    yield gauge("webhooks_endpoints_failing", "Endpoints whose last attempt failed.", counts.failing)
    yield gauge(
        "webhooks_endpoints_disabled",
        "Endpoints that were disabled because they were gone or failing.",
        counts.disabled,
    )
