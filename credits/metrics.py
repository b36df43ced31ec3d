"""The ledger's gauges: sums over all accounts, what is open, and the last reconciliations."""

from collections.abc import Iterator

from django.conf import settings
from prometheus_client.core import Metric

from credits import queries
from credits.models import ReconciliationRun
from gateway.common.metrics import gauge, gauges, register


@register
def ledger() -> Iterator[Metric]:
    """Yield sums over all accounts, and what is open, in one statement."""
    counts = queries.ledger_counts()
    yield gauge("credit_accounts", "Credit accounts.", counts.accounts)
    yield gauge("credits_outstanding", "Credits that users own: the sum of balances above 0.", counts.owned)
    yield gauge("credits_owed", "Credits that users owe: the sum of balances below 0.", counts.owed)
    yield gauge("credits_held", "Credits set aside, as the accounts say.", counts.held)
    yield gauge("credit_holds_open", "Holds that are neither captured nor released.", counts.open_holds)
    yield gauge("credit_holds_open_credits", "Credits of the open holds.", counts.open_hold_credits)
    yield gauge(
        "credit_holds_oldest_age_seconds", "Since the oldest open hold was made.", counts.oldest_hold_age
    )


@register
def reconciliations() -> Iterator[Metric]:
    """Yield the last run of each comparison, in one statement; nothing for one that never finished."""
    runs = queries.last_reconciliations()
    yield gauges(
        "reconciliation_scheduled",
        "1 for each comparison that is made by night on this service.",
        "comparison",
        dict.fromkeys(_scheduled(), 1),
    )
    yield gauges(
        "reconciliation_finished_timestamp_seconds",
        "When the comparison last came to its end, in unix seconds.",
        "comparison",
        {run.kind: run.finished_at.timestamp() for run in runs if run.finished_at},
    )
    yield gauges(
        "reconciliation_findings",
        "Differences that the last finished comparison found.",
        "comparison",
        {run.kind: run.counts.get("findings", 0) for run in runs},
    )


def _scheduled() -> list[str]:
    kinds = [kind.value for kind in ReconciliationRun.Kind]
    return kinds if settings.STRIPE_SECRET_KEY else [kind for kind in kinds if kind != "stripe"]
