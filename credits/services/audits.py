"""
Recompute the books and keep what was found, so that anybody can see when they were last sound.

The ledger is recomputed here; other parts bring their own comparison to `keep`.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from django.db.models.functions import Greatest, Now

from credits.models import LedgerAudit
from credits.services.reconcile import count_rows, find_differences
from gateway.common.enqueue import enqueue_now
from gateway.common.locks import try_advisory_lock

logger = logging.getLogger(__name__)
# A run that finds more is as wrong, and its row stays readable.
_KEPT = 1000


class Compared(NamedTuple):
    """How much was compared, and the findings as an audit holds them."""

    counts: Mapping[str, int]
    findings: Sequence[dict[str, Any]]


def keep(
    *, kind: LedgerAudit.Kind, lock: str, compare: Callable[[], Compared], now: datetime
) -> LedgerAudit | None:
    """Compare and store what was found; None where another run of the kind holds the lock. Findings are logged."""
    with try_advisory_lock(lock) as acquired:
        if not acquired:
            return None
        audit = LedgerAudit.objects.create(kind=kind, started_at=now)
        counts, findings = compare()
        audit.counts = {**counts, "findings": len(findings)}
        audit.findings = list(findings[:_KEPT])
        audit.save(update_fields=["counts", "findings"])
        # The run's own length counts, whatever clock `now` is of.
        LedgerAudit.objects.filter(pk=audit.pk).update(finished_at=Greatest(Now(), "started_at"))
        audit.refresh_from_db(fields=["finished_at"])
        return audit


def audit_ledger(*, now: datetime) -> LedgerAudit | None:
    """Recompute the ledger from its rows and store what differs; None where that is under way."""
    return keep(kind=LedgerAudit.Kind.LEDGER, lock="credits.audit", compare=_compare, now=now)


def ask_for_an_audit() -> None:
    """
    Let a worker recompute the ledger; a run that is under way is not doubled.

    Raises:
        WorkersUnreachable: the broker is away, so no worker was asked.
    """
    enqueue_now("credits.audit")


def _compare() -> Compared:
    findings = find_differences()
    for finding in findings:
        logger.error("ledger audit: %s", finding)
    told = [
        {
            "rule": finding.rule,
            "have": "" if finding.found is None else str(finding.found),
            "wanted": str(finding.expected),
            "ids": {"account": str(finding.account_id), "row": str(finding.row_id)},
        }
        for finding in findings
    ]
    return Compared(count_rows()._asdict(), told)
