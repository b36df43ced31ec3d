"""When the books were last compared, and what was found."""

from collections.abc import Iterator

from django.conf import settings
from prometheus_client.core import Metric

from credits.models import LedgerAudit
from credits.queries import last_audits
from gateway.metrics.families import gauges
from payments.models import ReconciliationRun
from payments.queries import last_reconciliation


def reconciliations() -> Iterator[Metric]:
    """Yield the last run of each comparison, in two statements; nothing for one that never finished."""
    stripe = last_reconciliation()
    runs: list[LedgerAudit | ReconciliationRun] = [*last_audits(), *([stripe] if stripe else [])]
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
    ours = [kind.value for kind in LedgerAudit.Kind]
    return [*ours, ReconciliationRun.Kind.STRIPE.value] if settings.STRIPE_SECRET_KEY else ours
