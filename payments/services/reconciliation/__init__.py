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

from credits.models import ReconciliationRun
from credits.services.reconciliation import Comparison, run
from payments.errors import BillingUnavailable
from payments.services import clawbacks
from payments.services.reconciliation import ledger, payouts, repairs, subscriptions
from payments.services.reconciliation.findings import Finding, Window

logger = logging.getLogger(__name__)
DAYS = 40
# A webhook, the sweep and an operation's resumption have long happened by then.
MINUTES = 15


def reconcile(
    *, now: datetime, days: int = DAYS, minutes: int = MINUTES, repair: bool = False
) -> ReconciliationRun | None:
    """
    Compare everything of the last `days` with Stripe and store what was found; None where another run is active.

    What began less than `minutes` ago is not missed yet. `repair` applies paid invoices, refunds and
    disputes as if Stripe had just reported them; other differences are for people.
    """
    if not settings.STRIPE_SECRET_KEY:
        raise BillingUnavailable("Payments are not set up on this service.", retry_after=3600)
    window = Window(
        since=now - timedelta(days=days),
        returned_since=now - max(timedelta(days=days), clawbacks.LOOKBACK),
        settled_before=now - timedelta(minutes=minutes),
    )
    return run(
        kind=ReconciliationRun.Kind.STRIPE,
        compare=lambda: _compare_and_repair(window, repair=repair, now=now),
        now=now,
    )


def _compare_and_repair(window: Window, *, repair: bool, now: datetime) -> Comparison:
    counts, findings = _compare_twice(window)
    if repair and findings:
        repaired = repairs.repair(findings, now=now)
        counts, findings = _compare_twice(window)
        counts["repaired"] = repaired
    for finding in findings:
        logger.error("reconciliation: %s", finding)
    return Comparison(counts, [asdict(finding) for finding in findings])


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
