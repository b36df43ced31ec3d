"""The ledger's gauges: sums over all accounts, open holds, and the last reconciliations."""

from collections.abc import Iterator

from django.conf import settings
from prometheus_client.core import Metric

from credits import queries
from credits.models import ReconciliationRun
from gateway.common.metrics import gauge, gauges, register


@register
def ledger() -> Iterator[Metric]:
    """Yield sums over all accounts and open holds, in one statement."""
    counts = queries.ledger_counts()
    yield gauge("credit_accounts", "Credit accounts.", counts.accounts)
    yield gauge("credits_outstanding", "Credits that users own: the sum of balances above 0.", counts.owned)
    yield gauge("credits_owed", "Credits that users owe: the sum of balances below 0.", counts.owed)
    yield gauge("credits_held", "Held credits, by the accounts.", counts.held)
    yield gauge("credit_holds_open", "Holds that are neither captured nor released.", counts.open_holds)
    yield gauge("credit_holds_open_credits", "Credits of the open holds.", counts.open_hold_credits)
    yield gauge("credit_holds_oldest_age_seconds", "Age of the oldest open hold.", counts.oldest_hold_age)


@register
def unbacked() -> Iterator[Metric]:
    """Yield today's unbacked credits, in one statement."""
    counts = queries.unbacked_today()
    yield gauges(
        "credits_unbacked_today",
        "Credits given today (UTC) without money or an earning behind them.",
        "kind",
        {"debt": counts.debt, "check-in": counts.check_ins},
    )
    yield gauge(
        "credits_unbacked_used_ratio",
        "Today's unbacked credits as a fraction of their ceiling.",
        (counts.debt + counts.check_ins) / counts.ceiling if counts.ceiling else 1,
    )


@register
def reconciliations() -> Iterator[Metric]:
    """Yield the last finished run of each comparison, in one statement."""
    runs = queries.last_reconciliations()
    yield gauges(
        "reconciliation_scheduled",
        "1 for each comparison that this service runs every night.",
        "comparison",
        dict.fromkeys(_scheduled(), 1),
    )
    yield gauges(
        "reconciliation_finished_timestamp_seconds",
        "When the comparison last finished, in unix seconds.",
        "comparison",
        {run.kind: run.finished_at.timestamp() for run in runs if run.finished_at},
    )
    yield gauges(
        "reconciliation_findings",
        "Differences found by the last finished comparison.",
        "comparison",
        {run.kind: run.counts.get("findings", 0) for run in runs},
    )


def _scheduled() -> list[str]:
    kinds = [kind.value for kind in ReconciliationRun.Kind]
    return kinds if settings.STRIPE_SECRET_KEY else [kind for kind in kinds if kind != "stripe"]
