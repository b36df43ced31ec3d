"""The relay's periodic task. Calls are sent and settled by the loops of `relay.worker`, which need no task."""

from typing import Any

from celery import shared_task
from django.utils import timezone

from credits.services.reconciliation import require_no_findings
from relay.services.settling import reconciliation


# It reads everything and so takes longer than the two minutes of other tasks.
@shared_task(name="relay.reconcile", soft_time_limit=2 * 3600, time_limit=2 * 3600 + 60)
def reconcile_with_chain(**_: Any) -> None:
    """
    Compare captured credits with receipts; the service logs and stores the differences.

    Raises:
        BooksDiffer: there are differences.
    """
    require_no_findings(reconciliation.reconcile(now=timezone.now()))
