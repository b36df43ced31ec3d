"""
Reconciliation compares our rows with Stripe and with each other.

A difference is reported only if a second comparison finds it too, because a webhook may arrive between the read from
Stripe and the read of our row. Only a repair changes rows, through the services that webhooks use. No module here calls
Stripe inside a transaction.
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
# After this time, a webhook, the sweep or a resumed operation should have stored every object.
MINUTES = 15


def reconcile(
    *, now: datetime, days: int = DAYS, minutes: int = MINUTES, repair: bool = False
) -> ReconciliationRun | None:
    """
    Compare the last `days` days, and a part of what is older, with Stripe; None if another run is in progress.

    Objects younger than `minutes` minutes are not reported as missing. With `repair`, missed invoices, refunds and
    disputes are applied as if Stripe had just reported them; staff must handle other differences.
    """
    if not settings.STRIPE_SECRET_KEY:
        raise BillingUnavailable("Payments are not set up on this service.", retry_after=3600)
    window = Window(
        since=now - timedelta(days=days),
        turn=now.toordinal() % Window.TURNS,
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
        *payouts.compare_part_paid(window=window),
        *payouts.compare_clawbacks(window=window, counts=counts),
        *payouts.compare_fraud_warnings(window=window),
        *ledger.compare_rows(window=window, counts=counts),
    ]
    return counts, findings
