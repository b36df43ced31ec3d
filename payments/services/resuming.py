"""Finishing what a process that died has begun."""

import logging
from datetime import datetime

from django.db.models import F

from gateway.common.errors import DomainError
from gateway.common.sweeps import would_stop_all
from payments.errors import BillingUnavailable
from payments.models import BillingOperation, Customer
from payments.services import asking, customers, operations, syncing
from payments.stripe.client import get_billing_client

logger = logging.getLogger(__name__)


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
        asking.carry_out(operation=operation, customer=customer, now=now)
        return
    for state in get_billing_client().list_subscriptions(customer_id=customer.stripe_customer_id):
        syncing.sync_subscription(subscription_id=state.subscription_id, now=now)
    operations.refuse(operation=operation, code="abandoned", now=now)
