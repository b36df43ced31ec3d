"""Celery tasks. The work is stored in PostgreSQL; beat's periodic tasks repeat it after a lost message or process."""

from typing import Any

from celery import shared_task

from credits.services.reconciliation import require_no_findings
from gateway.common import clock
from gateway.common.tasks import NothingSucceeded
from payments.errors import BillingRefused, BillingUnavailable
from payments.services import (
    bans,
    events,
    operations,
    purchases,
    reconciliation,
    refunds,
    synchronisation,
    top_ups,
    undo,
)
from payments.services.reconciliation import repairs


@shared_task(name="payments.process_event", throws=(BillingUnavailable,))
def process_event(*, event_id: int, **_: Any) -> None:
    events.process(event_id=event_id, now=clock.now())


@shared_task(name="payments.process_due_events")
def process_due_events(**_: Any) -> None:
    events.process_due(now=clock.now())


@shared_task(name="payments.resume_operations")
def resume_operations(**_: Any) -> None:
    operations.resume_abandoned(now=clock.now())
    refunds.send_pending(now=clock.now())
    undo.release_forgotten(now=clock.now())
    purchases.close_unpaid(now=clock.now())
    bans.end_renewals(now=clock.now())


@shared_task(name="payments.top_up", throws=(BillingUnavailable,))
def top_up(**_: Any) -> None:
    top_ups.run(now=clock.now())


@shared_task(name="payments.send_refund", throws=(BillingUnavailable, BillingRefused))
def send_refund(*, refund_id: str, **_: Any) -> None:
    refunds.send(refund_id=refund_id, now=clock.now())


@shared_task(name="payments.catch_up", throws=(BillingUnavailable,))
def catch_up(**_: Any) -> None:
    """Fetch events and paid invoices that Stripe could not deliver."""
    try:
        events.fetch_undelivered(now=clock.now())
    except NothingSucceeded:
        repairs.pay_out_missed_invoices(now=clock.now())
        raise
    repairs.pay_out_missed_invoices(now=clock.now())


# The next three tasks read all rows, so they may run longer than the two minutes of other tasks.
_SOFT_LIMIT_SECONDS, _HARD_LIMIT_SECONDS = 2 * 3600, 2 * 3600 + 60


@shared_task(
    name="payments.refresh_subscriptions",
    throws=(BillingUnavailable,),
    soft_time_limit=_SOFT_LIMIT_SECONDS,
    time_limit=_HARD_LIMIT_SECONDS,
)
def refresh_subscriptions(**_: Any) -> None:
    synchronisation.refresh_subscriptions(now=clock.now())


@shared_task(
    name="payments.claw_back",
    throws=(BillingUnavailable,),
    soft_time_limit=_SOFT_LIMIT_SECONDS,
    time_limit=_HARD_LIMIT_SECONDS,
)
def claw_back(**_: Any) -> None:
    repairs.claw_back_missed_money(now=clock.now())


@shared_task(name="payments.reconcile", soft_time_limit=_SOFT_LIMIT_SECONDS, time_limit=_HARD_LIMIT_SECONDS)
def reconcile_with_stripe(**_: Any) -> None:
    """
    Compare our rows with Stripe's; the service logs and stores the differences.

    Raises:
        BooksDiffer: there are differences.
    """
    require_no_findings(reconciliation.reconcile(now=clock.now()))
