"""
Billing operations: stored, asked for with their own id as the key, applied.

1. `begin` commits a pending row; the database allows one per user.
2. The caller asks Stripe with the row's id as idempotency key, holding nothing.
3. The caller applies the answer and calls `finish` in the same transaction.

A process that dies between the steps leaves a pending row. The next request of the
user, or the sweep, asks again with the same key and gets Stripe's first answer.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any

from django.db import IntegrityError, transaction

from gateway.common.errors import DomainError
from payments.errors import BillingInProgress
from payments.models import BillingOperation
from users.models import User

# Stripe keeps an idempotency key for at least 24 hours; a little less is certain.
KEY_LIFETIME = timedelta(hours=23)
# A request that is alive finishes within this time; an older pending operation was abandoned.
PATIENCE = timedelta(seconds=60)
# Of 50 equal requests at once some meet an operation that has just ended five times in a row; a try is two statements.
_TRIES = 40


def begin(
    *, user: User, kind: BillingOperation.Kind, parameters: dict[str, Any], now: datetime
) -> BillingOperation:
    """
    Return a pending operation for exactly these parameters: a new one, or the one that waits to be finished.

    Raises:
        BillingInProgress: the user has a pending operation of another kind or with other parameters, or
            one whose key Stripe may have forgotten: the sweep looks at what became of it.
    """
    for _ in range(_TRIES):
        made, pending = _create_or_find(user=user, kind=kind, parameters=parameters, now=now)
        if made is not None:
            return made
        if pending is None:
            continue  # It has just ended.
        if (pending.kind, pending.parameters) != (kind, parameters) or is_forgotten(
            operation=pending, now=now
        ):
            raise BillingInProgress("Another change of this subscription is under way.", retry_after=2)
        return pending
    raise BillingInProgress("Other changes keep coming. Repeat the request.", retry_after=1)


def _create_or_find(
    *, user: User, kind: BillingOperation.Kind, parameters: dict[str, Any], now: datetime
) -> tuple[BillingOperation | None, BillingOperation | None]:
    """Return a new operation, or the pending one that stands in its way."""
    wanted = {"user_id": user.pk, "kind": kind, "parameters": parameters, "created_at": now}
    try:
        with transaction.atomic(durable=True):
            return BillingOperation.objects.create(**wanted), None
    except IntegrityError:
        pending = BillingOperation.objects.filter(user_id=user.pk, status=BillingOperation.Status.PENDING)
        return None, pending.first()


def is_forgotten(*, operation: BillingOperation, now: datetime) -> bool:
    """Return whether Stripe may have forgotten the operation's key, and would carry it out anew."""
    return now - operation.created_at > KEY_LIFETIME


@contextmanager
def closed_if_refused(*, operation: BillingOperation, now: datetime) -> Iterator[None]:
    """Close the operation where Stripe refuses it for good; where Stripe is away it stays pending."""
    try:
        yield
    except DomainError as refusal:
        if not refusal.retryable:
            refuse(operation=operation, code=refusal.code, now=now)
        raise


def finish(*, operation: BillingOperation, outcome: str, now: datetime) -> bool:
    """Mark the operation done, inside the caller's transaction; False where another process was faster."""
    return _close(operation, BillingOperation.Status.DONE, outcome, now)


def refuse(*, operation: BillingOperation, code: str, now: datetime) -> bool:
    """Mark the operation refused by Stripe: a repeat with other circumstances is a new operation."""
    return _close(operation, BillingOperation.Status.REFUSED, code, now)


def _close(operation: BillingOperation, status: BillingOperation.Status, outcome: str, now: datetime) -> bool:
    waiting = BillingOperation.objects.filter(pk=operation.pk, status=BillingOperation.Status.PENDING)
    return waiting.update(status=status, outcome=outcome[:255], finished_at=now) > 0
