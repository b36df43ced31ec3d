"""
Billing operations: written down, asked for with their own id as the key, applied.

1. `begin` commits a pending row; the database allows one per user.
2. The caller asks Stripe with the row's id as idempotency key, holding nothing.
3. The caller applies the answer and calls `finish` in the same transaction.

A process that dies between the steps leaves a pending row. The next request of the
user, or the sweep, asks again with the same key and gets Stripe's first answer.
"""

from datetime import datetime, timedelta
from typing import Any

from django.db import IntegrityError, transaction

from gateway.common.owner import ProfileOwner
from payments.errors import BillingInProgress
from payments.models import BillingOperation

# Stripe keeps an idempotency key for at least 24 hours; a little less is certain.
KEY_LIFETIME = timedelta(hours=23)
# A request that is alive finishes within this time; an older pending operation was abandoned.
PATIENCE = timedelta(seconds=60)


def begin(
    *, user: ProfileOwner, kind: BillingOperation.Kind, parameters: dict[str, Any], now: datetime
) -> BillingOperation:
    """
    Return a pending operation for exactly these parameters: a new one, or the one that waits to be finished.

    Raises:
        BillingInProgress: the user has a pending operation of another kind or with other parameters.
    """
    try:
        with transaction.atomic(durable=True):
            return BillingOperation.objects.create(
                user_id=user.pk, kind=kind, parameters=parameters, created_at=now
            )
    except IntegrityError:
        pending = BillingOperation.objects.filter(
            user_id=user.pk, status=BillingOperation.Status.PENDING
        ).first()
    if pending is None:
        raise BillingInProgress("The other change has just ended. Repeat the request.", retry_after=1)
    if (pending.kind, pending.parameters) != (kind, parameters):
        raise BillingInProgress("Another change of this subscription is under way.", retry_after=2)
    return pending


def finish(*, operation: BillingOperation, outcome: str, now: datetime) -> bool:
    """Mark the operation done, inside the caller's transaction; False where another process was faster."""
    return _close(operation, BillingOperation.Status.DONE, outcome, now)


def refuse(*, operation: BillingOperation, code: str, now: datetime) -> bool:
    """Mark the operation refused by Stripe: a repeat with other circumstances is a new operation."""
    return _close(operation, BillingOperation.Status.REFUSED, code, now)


def _close(operation: BillingOperation, status: BillingOperation.Status, outcome: str, now: datetime) -> bool:
    waiting = BillingOperation.objects.filter(pk=operation.pk, status=BillingOperation.Status.PENDING)
    return waiting.update(status=status, outcome=outcome[:255], finished_at=now) > 0
