"""The gauges of accounts: deletions that are not finished."""

from collections.abc import Iterator

from prometheus_client.core import Metric

from gateway.common.metrics import gauges, register
from users import queries


@register
def deletions() -> Iterator[Metric]:
    """Yield the age of unfinished deletions, in one statement."""
    late = queries.late_deletions()
    yield gauges(
        "account_deletions_oldest_age_seconds",
        "Age of the oldest unfinished account deletion, by its state; 0 without one.",
        "status",
        {"requested": late.billing_age, "billing-ended": late.erasure_age},
    )
