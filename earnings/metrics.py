"""The gauges of ad networks: which are enabled, and what became of their postbacks."""

from collections.abc import Iterator

from prometheus_client.core import Metric

from earnings import queries
from gateway.common.metrics import gauge, gauges, register


@register
def postbacks() -> Iterator[Metric]:
    """Yield held earnings, and the postbacks of the last day that went wrong, in one statement."""
    counts = queries.postback_counts()
    yield gauge("postbacks_held", "Earnings that wait before they are given.", counts.held)
    yield gauge("postbacks_held_credits", "Credits of the held earnings.", counts.held_credits)
    yield gauge(
        "postbacks_held_overdue_seconds",
        "Since the oldest held earning of an enabled network should have been given; 0 where none is late.",
        counts.overdue_age,
    )
    yield gauge(
        "postbacks_refused_in_last_day",
        "Postbacks of the last 24 hours that were signed and refused.",
        counts.refused,
    )
    yield gauge(
        "postbacks_conflicting_in_last_day",
        "Postbacks of the last 24 hours that came again saying something else.",
        counts.conflicting,
    )


@register
def networks() -> Iterator[Metric]:
    yield gauges(
        "ad_network_enabled", "1 where postbacks of the network are taken.", "network", queries.networks()
    )
