"""The relay's periodic task. Calls are sent and settled by the loops of `relay.worker`, which need no task."""

from typing import Any

from celery import shared_task
from django.utils import timezone

from relay.services import reconciliation


class ChainDiffers(Exception):
    """Captured credits differ from the gas charged. Nothing catches it, so the task counts as failed."""


# It reads everything and so takes longer than the two minutes of other tasks.
@shared_task(name="relay.reconcile", soft_time_limit=2 * 3600, time_limit=2 * 3600 + 60)
def reconcile_with_chain(**_: Any) -> None:
    """
    Compare captured credits with receipts; the service logs and stores the differences.

    Raises:
        ChainDiffers: there are differences.
    """
    run = reconciliation.reconcile(now=timezone.now())
    if run is not None and run.counts["findings"]:
        raise ChainDiffers(f"{run.counts['findings']} differences, run {run.pk}")
