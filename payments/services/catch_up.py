"""
What beat does so that nothing depends on webhooks: ask Stripe what we have missed.

Finishing what a process that died has begun.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import F

from gateway.common.db import would_stop_all
from gateway.common.errors import DomainError
from payments.errors import AnswerOutdated, BillingUnavailable
from payments.models import BillingOperation, Clawback, Customer, Payout, Subscription
from payments.services import (
    clawbacks,
    customers,
    events,
    operations,
    payouts,
    snapshots,
    subscriptions,
    synchronisation,
)
from payments.stripe.client import get_billing_client

logger = logging.getLogger(__name__)
# Stripe keeps events for 30 days; a month's invoice is looked for somewhat longer.
_EVENT_MEMORY = timedelta(days=29)
_INVOICE_WINDOW = timedelta(days=40)


def fetch_undelivered_events(*, now: datetime) -> int:
    """
    Store events that no endpoint of ours took; return how many were new.

    Raises:
        BillingUnavailable: Stripe is away.
        NothingSucceeded: each one met an error.
    """
    undelivered = get_billing_client().undelivered_events(
        since=now - _EVENT_MEMORY, types=snapshots.EVENT_TYPES
    )
    stored, attempts = 0, _Attempts("event")
    for event, body in undelivered:
        with attempts.one(event.event_id):
            stored += events.store(event=event, body=body, now=now)
    attempts.conclude()
    return stored


def pay_out_missed_invoices(*, now: datetime) -> int:
    """
    Apply every paid invoice of the last 40 days that has no payout; return how many got one.

    Raises:
        BillingUnavailable: Stripe is away.
        NothingSucceeded: each one met an error.
    """
    paid, attempts = 0, _Attempts("invoice")
    for invoice in get_billing_client().paid_invoices_since(since=now - _INVOICE_WINDOW):
        known = Payout.objects.filter(stripe_invoice_id=invoice.invoice_id)
        if not payouts.is_payable(invoice=invoice) or known.exists():
            continue
        with attempts.one(invoice.invoice_id):
            _apply(snapshots.of_invoice(invoice), now=now)
        paid += known.count()
    attempts.conclude()
    return paid


def claw_back_missed_money(*, now: datetime) -> int:
    """
    Claw back, or give again, what refunds and disputes ask for by now; return how many steps that took.

    Looks at every refund and dispute of the last 180 days, even where Stripe counts its event as delivered:
    a restored database has forgotten events that it took.

    Raises:
        BillingUnavailable: Stripe is away.
        NothingSucceeded: each one met an error.
    """
    steps, attempts = 0, _Attempts("payment")
    gone_back = get_billing_client().payments_gone_back_since(since=now - clawbacks.MEMORY)
    for payment_intent_id in dict.fromkeys(gone_back):
        if not Payout.objects.filter(stripe_payment_intent_id=payment_intent_id).exists():
            continue
        known = Clawback.objects.filter(payout__stripe_payment_intent_id=payment_intent_id)
        steps_before = known.count()
        with attempts.one(payment_intent_id):
            _apply(snapshots.of_payment(payment_intent_id), now=now)
        steps += known.count() - steps_before
    attempts.conclude()
    return steps


def refresh_subscriptions(*, now: datetime) -> int:
    """
    Read every living subscription afresh; return how many were read.

    Raises:
        BillingUnavailable: Stripe is away.
        NothingSucceeded: each one met an error.
    """
    attempts = _Attempts("subscription")
    living = list(Subscription.objects.living().values_list("stripe_subscription_id", flat=True))
    for subscription_id in living:
        with attempts.one(subscription_id):
            synchronisation.sync_subscription(subscription_id=subscription_id, now=now)
    attempts.conclude()
    return len(living)


def _apply(found: snapshots.Facts, *, now: datetime) -> None:
    with transaction.atomic(durable=True):
        found.apply(cause="reconciliation", now=now)


class NothingSucceeded(Exception):
    """Each item of a sweep met an error, so the fault is no item's. Raised so that the task counts as failed."""


class _Attempts:
    """The items of a sweep: one that cannot be written now holds up no other, and reconciliation still finds it."""

    def __init__(self, noun: str) -> None:
        self.noun, self.succeeded, self.failed = noun, 0, 0

    @contextmanager
    def one(self, identifier: str) -> Iterator[None]:
        try:
            yield
            self.succeeded += 1
        except BillingUnavailable:
            raise
        except (DomainError, AnswerOutdated) as reason:
            logger.warning("%s %s is passed over: %s", self.noun, identifier, type(reason).__name__)
        except Exception as error:
            if would_stop_all(error):
                raise
            self.failed += 1
            logger.exception("%s %s is passed over", self.noun, identifier)

    def conclude(self) -> None:
        if self.failed and not self.succeeded:
            raise NothingSucceeded(f"{self.failed} of {self.failed}: {self.noun}")


def resume_abandoned(*, now: datetime) -> int:
    """
    Finish pending operations that nobody works on any more; return how many.

    One that fails again stays, or is over where Stripe refused it; the others go on. When Stripe is
    away, all wait for the next sweep.

    Raises:
        OutOfTime: the worker must stop.
        OperationalError: the database is away.
    """
    abandoned = BillingOperation.objects.filter(
        status=BillingOperation.Status.PENDING, created_at__lt=now - operations.PATIENCE
    )
    finished = 0
    for operation in abandoned.order_by("created_at")[:100]:
        try:
            BillingOperation.objects.filter(pk=operation.pk).update(attempts=F("attempts") + 1)
            resume(operation=operation, now=now)
        except BillingUnavailable:
            break
        except DomainError as refusal:
            logger.warning("operation %s waits: %s", operation.pk, refusal.code)
        except Exception as error:
            if would_stop_all(error):
                raise
            logger.exception("operation %s failed", operation.pk)
        else:
            finished += 1
    return finished


def resume(*, operation: BillingOperation, now: datetime) -> None:
    """
    Ask again with the operation's key; once Stripe may have forgotten the key, look at what it has instead.

    Raises:
        BillingUnavailable: Stripe is away; the operation stays pending.
    """
    key_forgotten = operations.is_forgotten(operation=operation, now=now)
    if operation.kind == BillingOperation.Kind.CREATE_CUSTOMER:
        if key_forgotten:
            operations.refuse(operation=operation, code="abandoned", now=now)
        else:
            customers.create(operation=operation, now=now)
        return
    customer = Customer.objects.get(user_id=operation.user_id)
    if not key_forgotten:
        subscriptions.carry_out(operation=operation, customer=customer, now=now)
        return
    for state in get_billing_client().list_subscriptions(customer_id=customer.stripe_customer_id):
        synchronisation.sync_subscription(subscription_id=state.subscription_id, now=now)
    operations.refuse(operation=operation, code="abandoned", now=now)
