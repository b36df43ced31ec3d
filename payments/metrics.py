"""The gauges of payments: what waits for Stripe, or because of it."""

from collections.abc import Iterator

from prometheus_client.core import Metric

from gateway.common.metrics import gauge, gauges, register
from payments import queries


@register
def payments() -> Iterator[Metric]:
    """Yield events and operations that are not done, in one statement."""
    figures = queries.figures()
    yield gauges(
        "stripe_events_waiting",
        "Delivered events that are not applied: received, or failed and tried again.",
        "status",
        {"received": figures.received_events, "failed": figures.failed_events},
    )
    yield gauge(
        "stripe_events_oldest_age_seconds",
        "Since the oldest event came that is not applied; 0 without one.",
        figures.oldest_event_age,
    )
    yield gauge(
        "billing_operations_pending",
        "Changes that were begun at Stripe and are not finished.",
        figures.pending_operations,
    )
    yield gauge(
        "billing_operations_oldest_age_seconds",
        "Since the oldest pending change was begun; 0 without one.",
        figures.oldest_operation_age,
    )
