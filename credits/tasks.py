"""Celery tasks of the ledger."""

import logging
from typing import Any

from celery import shared_task

from credits.services import causes, debts, expiry, reconciliation, unbacked
from credits.services.reconciliation import require_no_findings
from gateway.common import clock

logger = logging.getLogger(__name__)


# Reading the whole ledger may take longer than other tasks may; the statement has its own timeout.
@shared_task(name="credits.reconcile", soft_time_limit=2 * 3600, time_limit=2 * 3600 + 60)
def reconcile_ledger(**_: Any) -> None:
    """
    Recompute the ledger; the service logs and stores the differences.

    Raises:
        BooksDiffer: there are differences.
    """
    run = reconciliation.reconcile(now=clock.now())
    require_no_findings(run)
    if run is not None:
        logger.info(
            "ledger reconciliation: no difference; "
            "%(accounts)s accounts, %(entries)s entries, %(holds)s holds checked",
            run.counts,
        )


@shared_task(name="credits.compare_causes", soft_time_limit=2 * 3600, time_limit=2 * 3600 + 60)
def compare_causes(**_: Any) -> None:
    """
    Compare entries with the rows that caused them; the service logs and stores the differences.

    Raises:
        BooksDiffer: there are differences.
    """
    require_no_findings(causes.reconcile(now=clock.now()))


# Computing the lots of many accounts may take longer than other tasks may.
@shared_task(name="credits.expire", soft_time_limit=2 * 3600, time_limit=2 * 3600 + 60)
def expire(**_: Any) -> None:
    """Announce and post the expiry of given credits, where a rule is set."""
    now = clock.now()
    expired, announced = expiry.expire(now=now), expiry.announce(now=now)
    if expired or announced:
        logger.info("%s lots have expired, %s were announced", expired, announced)


@shared_task(name="credits.keep_debts")
def keep_debts(**_: Any) -> None:
    """Recount today's new debt, move debts of deleted accounts to their successors, and delete expired digests."""
    unbacked.recount_today()
    moved, forgotten = debts.return_due(), debts.forget_settled(now=clock.now())
    logger.info("%s debts of deleted accounts were taken over, %s digests deleted", moved, forgotten)
