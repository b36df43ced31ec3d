"""The gauges of accounts: people who deleted theirs and are not erased yet."""

from collections.abc import Iterator

from prometheus_client.core import Metric

from gateway.common.metrics import gauges, register
from users import queries


@register
def deletions() -> Iterator[Metric]:
    """Yield how long those who leave have been waiting, in one statement."""
    late = queries.late_deletions()
    yield gauges(
        "account_deletions_oldest_age_seconds",
        "Since the oldest unfinished deletion of an account was asked for, by its state; 0 without one.",
        "status",
        {"requested": late.billing_age, "billing-ended": late.erasure_age},
    )
