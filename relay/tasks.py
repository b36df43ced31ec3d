"""The relay's periodic task. The loops of `relay.worker` send and settle calls without tasks."""

from typing import Any

from celery import shared_task

from credits.services.reconciliation import require_no_findings
from gateway.common import clock
from relay.services.settling import reconciliation


# The task reads all calls, so it may run longer than the two minutes of other tasks.
@shared_task(name="relay.reconcile", soft_time_limit=2 * 3600, time_limit=2 * 3600 + 60)
def reconcile_with_chain(**_: Any) -> None:
    """
    Compare captured credits with receipts; the service logs and stores the differences.

    Raises:
        BooksDiffer: there are differences.
    """
    require_no_findings(reconciliation.reconcile(now=clock.now()))
