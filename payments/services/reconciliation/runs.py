"""
Reconciliation: do our rows say what Stripe says?

A difference counts once a second look finds it too: between the reading of Stripe and that
of our row, a webhook may have come in. Only a repair changes anything, by the same services
that webhooks use.
"""

import logging
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction

from gateway.common.db import try_advisory_lock, would_stop_all
from gateway.common.errors import DomainError
from gateway.common.tasks import enqueue_now
from payments.errors import AnswerOutdated, BillingUnavailable
from payments.models import ReconciliationRun
from payments.services import clawbacks, snapshots, synchronisation
from payments.services.reconciliation import findings, ledger, stripe
from payments.services.reconciliation.findings import Finding, Rule, Window
from payments.stripe.client import get_billing_client

logger = logging.getLogger(__name__)
DAYS = 40
# A webhook, the sweep and an operation's resumption have long happened by then.
MINUTES = 15
# A run that finds more is as wrong, and its row stays readable.
_KEPT = 1000


def reconcile(
    *, now: datetime, days: int = DAYS, minutes: int = MINUTES, repair: bool = False
) -> ReconciliationRun | None:
    """
    Compare everything of the last `days` with Stripe and store what was found; None where another run is under way.

    What began less than `minutes` ago is not missed yet. `repair` applies paid invoices and money that went
    back as if Stripe had just reported them; other differences are for people.

    Raises:
        BillingUnavailable: Stripe is away, and the stored run stays unfinished; or payments are not set up.
    """
    if not settings.STRIPE_SECRET_KEY:
        raise BillingUnavailable("Payments are not set up on this service.", retry_after=3600)
    with try_advisory_lock("payments.reconcile") as acquired:
        if not acquired:
            return None
        run = ReconciliationRun.objects.create(kind=ReconciliationRun.Kind.STRIPE, started_at=now)
        window = Window(
            since=now - timedelta(days=days),
            money_since=now - max(timedelta(days=days), clawbacks.MEMORY),
            settled_before=now - timedelta(minutes=minutes),
        )
        counts, found = _confirmed(window)
        if repair and found:
            repaired = sum(_repair(finding, now=now) for finding in found)
            counts, found = _confirmed(window)
            counts["repaired"] = repaired
        return _finish(run, counts, found)


def ask_for_a_run() -> None:
    """
    Let a worker compare the usual window; a run that is under way is not doubled.

    Raises:
        WorkersUnreachable: the broker is away, so no worker was asked.
    """
    enqueue_now("payments.reconcile")


def _confirmed(window: Window) -> tuple[Counter[str], list[Finding]]:
    counts, found = _look(window)
    if found:
        counts, again = _look(window)
        found = [finding for finding in again if any(finding.is_about(earlier) for earlier in found)]
    return counts, found


def _look(window: Window) -> tuple[Counter[str], list[Finding]]:
    counts: Counter[str] = Counter()
    found = [
        *stripe.compare_customers(window=window, counts=counts),
        *stripe.compare_subscriptions(counts=counts),
        *stripe.compare_invoices(window=window, counts=counts),
        *findings.compare(window=window, counts=counts),
        *ledger.compare(window=window, counts=counts),
    ]
    return counts, found


def _finish(run: ReconciliationRun, counts: Counter[str], found: list[Finding]) -> ReconciliationRun:
    run.counts = {**counts, "findings": len(found)}
    run.findings = [asdict(finding) for finding in found[:_KEPT]]
    # The run's own length counts, whatever clock `now` is of.
    run.finished_at = max(synchronisation.mark(), run.started_at)
    run.save()
    for finding in found:
        logger.error("reconciliation: %s", finding)
    return run


def _repair(finding: Finding, *, now: datetime) -> bool:
    """Apply once more what a finding says was missed; return whether anything was applied."""
    gather = _gatherer(finding)
    if gather is None:
        return False
    try:
        for _ in range(synchronisation.LOOKS):
            found = gather()
            try:
                with transaction.atomic(durable=True):
                    found.apply(cause="reconciliation", now=now)
            except AnswerOutdated:
                continue
            return True
    except BillingUnavailable:
        raise
    except DomainError as refusal:
        logger.warning("%s cannot be repaired: %s", finding, refusal.code)
    except Exception as error:
        if would_stop_all(error):
            raise
        logger.exception("%s cannot be repaired", finding)
    return False


def _gatherer(finding: Finding) -> Callable[[], snapshots.Facts] | None:
    match finding.rule:
        case Rule.PAYOUT_MISSING:
            return lambda: snapshots.of_invoice(
                get_billing_client().retrieve_invoice(invoice_id=finding.ids["invoice"])
            )
        case Rule.CLAWBACK_SUM:
            return lambda: snapshots.of_payment(finding.ids["payment"])
    return None
