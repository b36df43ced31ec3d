"""What beat does so that nothing depends on a webhook arriving: ask Stripe what we have missed."""

from datetime import datetime, timedelta

from django.db import transaction

from gateway.common.errors import DomainError
from payments.models import Payout, Subscription
from payments.services import facts, inbox, syncing
from payments.stripe.client import get_billing_client

# Stripe keeps events for 30 days; a month's invoice is looked for somewhat longer.
_EVENT_MEMORY = timedelta(days=29)
_INVOICE_WINDOW = timedelta(days=40)


def fetch_undelivered_events(*, now: datetime) -> int:
    """
    Store events that no endpoint of ours took; return how many were new.

    Raises:
        BillingUnavailable: Stripe is away.
    """
    undelivered = get_billing_client().undelivered_events(since=now - _EVENT_MEMORY, types=facts.EVENT_TYPES)
    return sum(inbox.store(event=event, body=body, now=now) for event, body in undelivered)


def pay_out_missed_invoices(*, now: datetime) -> int:
    """
    Apply every paid invoice of the last 40 days that has no payout; return how many got one.

    Raises:
        BillingUnavailable: Stripe is away.
    """
    paid = 0
    for invoice in get_billing_client().paid_invoices_since(since=now - _INVOICE_WINDOW):
        if Payout.objects.filter(stripe_invoice_id=invoice.invoice_id).exists():
            continue
        found = facts.of_invoice(invoice, now=now)
        try:
            with transaction.atomic(durable=True):
                found.apply(cause="reconciliation", now=now)
        except DomainError as refusal:
            if not refusal.retryable:
                raise
        paid += Payout.objects.filter(stripe_invoice_id=invoice.invoice_id).count()
    return paid


def refresh_subscriptions(*, now: datetime) -> int:
    """
    Read every living subscription afresh; return how many were read.

    Raises:
        BillingUnavailable: Stripe is away.
    """
    living = list(Subscription.objects.living().values_list("stripe_subscription_id", flat=True))
    for subscription_id in living:
        syncing.sync_subscription(subscription_id=subscription_id, now=now)
    return len(living)
