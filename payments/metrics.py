"""The gauges of payments: events and operations that wait."""

from collections.abc import Iterator

from prometheus_client.core import Metric

from gateway.common.metrics import gauge, gauges, register
from payments import queries


@register
def payments() -> Iterator[Metric]:
    """Yield unfinished events and operations, and warnings of fraud, in one statement."""
    counts = queries.payment_counts()
    yield gauges(
        "stripe_events_waiting",
        "Delivered events that are not applied: received, or failed and retried.",
        "status",
        {"received": counts.received_events, "failed": counts.failed_events},
    )
    yield gauge(
        "stripe_events_oldest_age_seconds",
        "Age of the oldest event that is not applied; 0 without one.",
        counts.oldest_event_age,
    )
    yield gauge(
        "billing_operations_pending",
        "Changes at Stripe that are not finished.",
        counts.pending_operations,
    )
    yield gauge(
        "billing_operations_oldest_age_seconds",
        "Age of the oldest unfinished change; 0 without one.",
        counts.oldest_operation_age,
    )
    yield gauge(
        "payment_fraud_warnings",
        "Payments of which a card network has warned in the last week, not returned yet.",
        counts.fraud_warnings,
    )
