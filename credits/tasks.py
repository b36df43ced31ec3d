"""Celery tasks of the ledger."""

import logging
from typing import Any

from celery import shared_task
from django.utils import timezone

from credits.services import reconciliation, root_audit, roots
from credits.services.reconciliation import require_no_findings

logger = logging.getLogger(__name__)


# The first time, a ledger with a past gets many roots.
@shared_task(name="credits.close_roots", soft_time_limit=3600, time_limit=3600 + 60)
def close_roots(**_: Any) -> None:
    """Put signed roots over the entries that have none."""
    roots.close_roots()


@shared_task(name="credits.audit_roots", soft_time_limit=4 * 3600, time_limit=4 * 3600 + 60)
def audit_roots(**_: Any) -> None:
    """
    Compare every entry with its signed root; the service logs and stores what differs.

    Raises:
        BooksDiffer: there is one.
    """
    require_no_findings(root_audit.audit(now=timezone.now()))


# A whole ledger takes longer than other tasks may; the statement has a limit of its own.
@shared_task(name="credits.reconcile", soft_time_limit=2 * 3600, time_limit=2 * 3600 + 60)
def reconcile_ledger(**_: Any) -> None:
    """
    Recompute the ledger; the service logs and stores what differs.

    Raises:
        BooksDiffer: there is one.
    """
    run = reconciliation.reconcile(now=timezone.now())
    require_no_findings(run)
    if run is not None:
        logger.info(
            "ledger reconciliation: no difference; "
            "%(accounts)s accounts, %(entries)s entries, %(holds)s holds checked",
            run.counts,
        )
