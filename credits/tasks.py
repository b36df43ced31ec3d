"""Celery tasks of the ledger."""

import logging
from typing import Any

from celery import shared_task
from django.utils import timezone

from credits.services import reconciliation

logger = logging.getLogger(__name__)


class LedgerDiffers(Exception):
    """A total of the ledger is not what its rows say. Raised so that the task counts as failed; nothing catches it."""


# A whole ledger takes longer than other tasks may; the statement has a limit of its own.
@shared_task(name="credits.reconcile", soft_time_limit=2 * 3600, time_limit=2 * 3600 + 60)
def reconcile_ledger(**_: Any) -> None:
    """
    Recompute the ledger; the service logs and stores what differs.

    Raises:
        LedgerDiffers: there is one.
    """
    run = reconciliation.reconcile(now=timezone.now())
    if run is None:
        return
    counts = run.counts
    checked = f"{counts['accounts']} accounts, {counts['entries']} entries, {counts['holds']} holds checked"
    if counts["findings"]:
        raise LedgerDiffers(f"{counts['findings']} differences; {checked}")
    logger.info("ledger reconciliation: no difference; %s", checked)
