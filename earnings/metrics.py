"""The gauges of ad networks: enabled networks, and outcomes of postbacks."""

from collections.abc import Iterator

from prometheus_client.core import Metric

from earnings import queries
from gateway.common.metrics import gauge, gauges, register


@register
def postbacks() -> Iterator[Metric]:
    """Yield held and open earnings, and refused or conflicting postbacks of the last day, in one statement."""
    counts = queries.postback_counts()
    yield gauge("postbacks_held", "Held earnings.", counts.held)
    yield gauge("postbacks_held_credits", "Credits of the held earnings.", counts.held_credits)
    yield gauge(
        "postbacks_held_overdue_seconds",
        "Delay of the oldest overdue held earning of an enabled network; 0 if none is overdue.",
        counts.overdue_age,
    )
    yield gauge(
        "postbacks_beyond_cap", "Earnings that are held because they exceed a cap.", counts.beyond_cap
    )
    yield gauge("postbacks_unassigned", "Signed earnings and reversals that name no user.", counts.unassigned)
    yield gauge(
        "postbacks_unmatched_reversals",
        "Reversals whose credit has not come within 24 hours.",
        counts.unmatched_reversals,
    )
    yield gauge(
        "earnings_ceiling_used_ratio",
        "Credits of all ad networks today, as a fraction of EARNINGS_DAILY_CEILING.",
        counts.ceiling_used,
    )
    yield gauge(
        "postbacks_refused_in_last_day",
        "Postbacks of the last 24 hours that were signed and refused.",
        counts.refused,
    )
    yield gauge(
        "postbacks_conflicting_in_last_day",
        "Conflicting duplicates of postbacks in the last 24 hours.",
        counts.conflicting,
    )


@register
def networks() -> Iterator[Metric]:
    yield gauges(
        "ad_network_enabled", "1 if postbacks of the network are accepted.", "network", queries.networks()
    )
