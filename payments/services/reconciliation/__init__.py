"""
Reconciliation: do our rows say what Stripe says, and do they agree with each other?

A difference counts once a second comparison finds it too: between the reading of Stripe and that
of our row, a webhook may have come in. Only a repair changes anything, by the same services
that webhooks use. No module here asks Stripe inside a transaction.
"""

import logging
from collections import Counter
from dataclasses import asdict
from datetime import datetime, timedelta

from django.conf import settings

from gateway.common.db import try_advisory_lock
from gateway.common.tasks import enqueue_now
from payments.errors import BillingUnavailable
from payments.models import ReconciliationRun
from payments.services import clawbacks, synchronisation
from payments.services.reconciliation import ledger, payouts, repairs, subscriptions
from payments.services.reconciliation.findings import Finding, Window

logger = logging.getLogger(__name__)
DAYS = 40
# A webhook, the sweep and an operation's resumption have long happened by then.
MINUTES = 15
# A run that finds more is as wrong, and its row stays readable.
_MAX_STORED = 1000


def reconcile(
    *, now: datetime, days: int = DAYS, minutes: int = MINUTES, repair: bool = False
) -> ReconciliationRun | None:
    """
    Compare everything of the last `days` with Stripe and store what was found; None where another run is active.

    What began less than `minutes` ago is not missed yet. `repair` applies paid invoices, refunds and
    disputes as if Stripe had just reported them; other differences are for people.

    Raises:
        BillingUnavailable: Stripe is unreachable, and the stored run stays unfinished; or payments are not set up.
    """
    if not settings.STRIPE_SECRET_KEY:
        raise BillingUnavailable("Payments are not set up on this service.", retry_after=3600)
    with try_advisory_lock("payments.reconcile") as acquired:
        if not acquired:
            return None
        run = ReconciliationRun.objects.create(kind=ReconciliationRun.Kind.STRIPE, started_at=now)
        window = Window(
            since=now - timedelta(days=days),
            returned_since=now - max(timedelta(days=days), clawbacks.LOOKBACK),
            settled_before=now - timedelta(minutes=minutes),
        )
        counts, findings = _compare_twice(window)
        if repair and findings:
            repaired = repairs.repair(findings, now=now)
            counts, findings = _compare_twice(window)
            counts["repaired"] = repaired
        return _finish(run, counts, findings)


def enqueue_run() -> None:
    """
    Let a worker compare the usual window; a run that is active is not doubled.

    Raises:
        WorkersUnreachable: the broker is unreachable, so no worker was asked.
    """
    enqueue_now("payments.reconcile")


def _compare_twice(window: Window) -> tuple[Counter[str], list[Finding]]:
    counts, first = _compare(window)
    if not first:
        return counts, []
    counts, second = _compare(window)
    return counts, [finding for finding in second if any(finding.is_about(earlier) for earlier in first)]


def _compare(window: Window) -> tuple[Counter[str], list[Finding]]:
    counts: Counter[str] = Counter()
    findings = [
        *subscriptions.compare_customers(window=window, counts=counts),
        *subscriptions.compare_subscriptions(counts=counts),
        *payouts.compare_payouts(window=window, counts=counts),
        *payouts.compare_clawbacks(window=window, counts=counts),
        *ledger.compare_rows(window=window, counts=counts),
    ]
    return counts, findings


def _finish(run: ReconciliationRun, counts: Counter[str], findings: list[Finding]) -> ReconciliationRun:
    run.counts = {**counts, "findings": len(findings)}
    run.findings = [asdict(finding) for finding in findings[:_MAX_STORED]]
    # The run's own length counts, whatever clock `now` is of.
    run.finished_at = max(synchronisation.db_now(), run.started_at)
    run.save()
    for finding in findings:
        logger.error("reconciliation: %s", finding)
    return run
