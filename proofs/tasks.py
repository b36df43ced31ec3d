"""Celery tasks of the proofs."""

from typing import Any

from celery import shared_task

from credits.services.reconciliation import require_no_findings
from gateway.common import clock
from proofs.services import audit, roots


# The first run closes many roots if the ledger already has entries.
@shared_task(name="proofs.close_roots", soft_time_limit=3600, time_limit=3600 + 60)
def close_roots(**_: Any) -> None:
    """Close signed roots over the entries that no root covers."""
    roots.close_roots()


@shared_task(name="proofs.audit_roots", soft_time_limit=4 * 3600, time_limit=4 * 3600 + 60)
def audit_roots(**_: Any) -> None:
    """
    Compare every entry with its signed root; the service logs and stores each difference.

    Raises:
        BooksDiffer: there are differences.
    """
    require_no_findings(audit.audit(now=clock.now()))
