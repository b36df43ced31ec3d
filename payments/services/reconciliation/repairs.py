"""Repairs missed webhooks: paid invoices without a payout, and refunds and disputes without a clawback."""

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from functools import partial

from django.db import transaction

from gateway.common.tasks import Sweep
from payments.models import Clawback, Payout
from payments.services import clawbacks, payouts
from payments.services.reconciliation.findings import Finding, Rule
from payments.services.snapshots import Snapshot, fetch_and_apply, invoice_snapshot, payment_snapshot
from payments.stripe import get_billing_client

# A little longer than the month that an invoice is for.
_INVOICE_WINDOW = timedelta(days=40)


def pay_out_missed_invoices(*, now: datetime) -> int:
    """Pay out every invoice without a payout that was created or paid in the last 40 days; return how many."""
    paid_out, sweep = 0, Sweep("invoice")
    for invoice in get_billing_client().paid_invoices_since(since=now - _INVOICE_WINDOW):
        rows = Payout.objects.filter(stripe_invoice_id=invoice.invoice_id)
        if not payouts.is_payable(invoice=invoice) or rows.exists():
            continue
        with sweep.item(invoice.invoice_id):
            _apply(partial(invoice_snapshot, invoice), now=now)
        paid_out += rows.count()
    sweep.finish()
    return paid_out


def claw_back_missed_money(*, now: datetime) -> int:
    """
    Post the missing clawbacks of refunds and disputes, and reversals of clawbacks; return how many were posted.

    Reads every refund and dispute of the last 180 days, even those whose events Stripe has delivered, because a
    restored database may have lost stored events.
    """
    posted, sweep = 0, Sweep("payment")
    intents = get_billing_client().refunded_or_disputed_since(since=now - clawbacks.LOOKBACK)
    for payment_intent_id in dict.fromkeys(intents):
        paid = Payout.objects.paid_by([payment_intent_id])
        if not paid.exists():
            continue
        rows = Clawback.objects.filter(payout__in=paid)
        count_before = rows.count()
        with sweep.item(payment_intent_id):
            _apply(partial(payment_snapshot, payment_intent_id), now=now)
        posted += rows.count() - count_before
    sweep.finish()
    return posted


def repair(findings: Iterable[Finding], *, now: datetime) -> int:
    """Repair the missed payouts and clawbacks among the findings; return how many were repaired."""
    sweep = Sweep("finding")
    for finding in findings:
        fetch = _fetch_for(finding)
        if fetch is not None:
            with sweep.item(finding):
                _apply(fetch, now=now)
    return sweep.succeeded


def _fetch_for(finding: Finding) -> Callable[[], Snapshot] | None:
    client = get_billing_client()
    match finding.rule:
        case Rule.PAYOUT_MISSING:
            return lambda: invoice_snapshot(client.retrieve_invoice(invoice_id=finding.ids["invoice"]))
        case Rule.CLAWBACK_SUM:
            return lambda: payment_snapshot(finding.ids["payment"])
    return None


def _apply(fetch: Callable[[], Snapshot], *, now: datetime) -> None:
    fetch_and_apply(fetch=fetch, apply=partial(_write, now=now))


@transaction.atomic(durable=True)
def _write(snapshot: Snapshot, *, now: datetime) -> None:
    snapshot.apply(cause="reconciliation", now=now)
