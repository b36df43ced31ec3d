"""
Billing operations: commands to Stripe, stored first and then sent with their own id as the idempotency key.

1. `begin` commits a pending row; the database allows one per user.
2. `create_customer` or `change_subscription` sends the command, holding no lock.
3. The same function stores the response and finishes the operation in one transaction.

A process that dies between the steps leaves a pending row. The user's next change, or `resume_abandoned`, sends the
command again with the same key and gets Stripe's first response.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import F

from gateway.common.errors import DomainError
from gateway.common.tasks import Sweep
from payments.errors import BillingInProgress, BillingUnavailable, is_lasting, reason_of
from payments.models import BillingOperation, Customer
from payments.services import synchronisation
from payments.stripe import get_billing_client
from payments.stripe.client import SubscriptionState
from users.models import User

# Stripe keeps an idempotency key for at least 24 hours; this leaves a margin.
KEY_LIFETIME = timedelta(hours=23)
# A pending operation older than this counts as abandoned. If its request is only slow, both send the command with the
# same key, and Stripe executes it once.
ABANDONED_AFTER = timedelta(seconds=15)
# With 50 identical concurrent requests, some find an operation that has just ended five times in a row. One try costs
# two statements.
_MAX_TRIES = 40
_MAX_RESUMED = 100
_Kind = BillingOperation.Kind
_Status = BillingOperation.Status


def begin(*, user: User, kind: _Kind, parameters: dict[str, Any], now: datetime) -> BillingOperation:
    """
    Return a pending operation with exactly these parameters: a new one, or the user's unfinished one.

    Raises:
        BillingInProgress: the user has a pending operation of another kind or with other parameters, or
            one whose key Stripe may have forgotten. If its process has died, this call finishes it; the
            caller's view of the subscription may then be outdated, so the request must be repeated.
        BillingUnavailable: that operation cannot be finished, because Stripe is unavailable.
    """
    for _ in range(_MAX_TRIES):
        created, pending = _create_or_find(user=user, kind=kind, parameters=parameters, now=now)
        if created is not None:
            return created
        if pending is None:
            continue  # The other operation has just ended.
        is_same = (pending.kind, pending.parameters) == (kind, parameters)
        if is_same and not has_expired_key(operation=pending, now=now):
            return pending
        if _is_abandoned(pending, now=now):
            _finish_abandoned(pending, now=now)
        raise BillingInProgress("Another change of this subscription is in progress.", retry_after=2)
    raise BillingInProgress("Other requests keep changing the subscription. Retry.", retry_after=1)


def _create_or_find(
    *, user: User, kind: _Kind, parameters: dict[str, Any], now: datetime
) -> tuple[BillingOperation | None, BillingOperation | None]:
    fields = {"user_id": user.pk, "kind": kind, "parameters": parameters, "created_at": now}
    try:
        with transaction.atomic(durable=True):
            return BillingOperation.objects.create(**fields), None
    except IntegrityError:
        return None, BillingOperation.objects.filter(user_id=user.pk, status=_Status.PENDING).first()


def _is_abandoned(operation: BillingOperation, *, now: datetime) -> bool:
    return now - operation.created_at > ABANDONED_AFTER


def _finish_abandoned(operation: BillingOperation, *, now: datetime) -> None:
    """Finish another request's operation. A permanent refusal closes that operation and is not raised here."""
    try:
        _resume(operation=operation, now=now)
    except DomainError as error:
        if not is_lasting(error):
            raise


def has_expired_key(*, operation: BillingOperation, now: datetime) -> bool:
    """Return whether Stripe may have forgotten the operation's key, and would execute the command again."""
    return now - operation.created_at > KEY_LIFETIME


def create_customer(*, operation: BillingOperation, now: datetime) -> Customer:
    """
    Create the operation's customer at Stripe and store it; safe to repeat with the same operation.

    Raises:
        DomainError: Stripe refused the command; the operation is closed.
    """
    with _closed_if_refused(operation=operation, now=now):
        customer_id = get_billing_client().create_customer(
            profile_address=operation.parameters["address"],
            user_id=str(operation.user_id),
            key=str(operation.pk),
        )
    with transaction.atomic(durable=True):
        Customer.objects.bulk_create(
            [Customer(user_id=operation.user_id, stripe_customer_id=customer_id)], ignore_conflicts=True
        )
        finish(operation=operation, outcome=customer_id, now=now)
    return Customer.objects.current().get(user_id=operation.user_id)


def change_subscription(
    *, operation: BillingOperation, customer: Customer, now: datetime
) -> SubscriptionState:
    """
    Send the operation's command about a subscription to Stripe and store the response.

    Raises:
        DomainError: Stripe refused the command; the operation is closed.
    """
    requested_at = synchronisation.db_now()
    with _closed_if_refused(operation=operation, now=now):
        state = _send(operation)
    return synchronisation.store_latest(
        customer=customer,
        state=state,
        requested_at=requested_at,
        now=now,
        on_stored=lambda stored: finish(operation=operation, outcome=stored.subscription_id, now=now),
    )


def _send(operation: BillingOperation) -> SubscriptionState:
    client = get_billing_client()
    commands: dict[str, Callable[..., SubscriptionState]] = {
        _Kind.CREATE_SUBSCRIPTION: client.create_subscription,
        _Kind.UPDATE_SUBSCRIPTION: client.update_subscription,
        _Kind.CANCEL_SUBSCRIPTION: client.cancel_subscription,
    }
    return commands[operation.kind](**operation.parameters, key=str(operation.pk))


@contextmanager
def _closed_if_refused(*, operation: BillingOperation, now: datetime) -> Iterator[None]:
    try:
        yield
    except DomainError as error:
        if is_lasting(error):
            refuse(operation=operation, reason=reason_of(error), now=now)
        raise


def finish(*, operation: BillingOperation, outcome: str, now: datetime) -> None:
    """Mark the operation done, inside the caller's transaction, unless another process has finished it."""
    _close(operation, _Status.DONE, outcome, now)


def refuse(*, operation: BillingOperation, reason: str, now: datetime) -> None:
    """Mark the operation as refused by Stripe, so that a later repeat is a new operation."""
    _close(operation, _Status.REFUSED, reason, now)


def _close(operation: BillingOperation, status: _Status, outcome: str, now: datetime) -> None:
    pending = BillingOperation.objects.filter(pk=operation.pk, status=_Status.PENDING)
    pending.update(status=status, outcome=outcome[:255], finished_at=now)


def resume_abandoned(*, now: datetime) -> int:
    """
    Finish pending operations whose process has died; return how many.

    An operation that fails again stays pending, or is closed if Stripe refused it; the sweep continues with the others.
    While Stripe is unreachable, all wait for the next sweep.
    """
    abandoned = BillingOperation.objects.filter(
        status=_Status.PENDING, created_at__lt=now - ABANDONED_AFTER
    ).order_by("created_at")[:_MAX_RESUMED]
    sweep = Sweep("operation")
    try:
        for operation in abandoned:
            with sweep.item(operation.pk):
                _resume(operation=operation, now=now)
    except BillingUnavailable:
        pass
    return sweep.succeeded


def _resume(*, operation: BillingOperation, now: datetime) -> None:
    """
    Send the command again with its key; if Stripe may have forgotten the key, read Stripe's state instead.

    An operation that old is closed also if Stripe refuses that read, since it would block every later change.
    """
    BillingOperation.objects.filter(pk=operation.pk).update(attempts=F("attempts") + 1)
    if has_expired_key(operation=operation, now=now):
        with _closed_if_refused(operation=operation, now=now):
            if operation.kind != _Kind.CREATE_CUSTOMER:
                _sync_subscriptions_of(operation.user_id, now=now)
        refuse(operation=operation, reason="abandoned", now=now)
    elif operation.kind == _Kind.CREATE_CUSTOMER:
        create_customer(operation=operation, now=now)
    else:
        change_subscription(operation=operation, customer=_customer_of(operation), now=now)


def _customer_of(operation: BillingOperation) -> Customer:
    """Return the customer of the command. It may have been deleted at Stripe since."""
    parameters = operation.parameters
    if operation.kind == _Kind.CREATE_SUBSCRIPTION:
        return Customer.objects.get(stripe_customer_id=parameters["customer_id"])
    return Customer.objects.get(subscriptions__stripe_subscription_id=parameters["subscription_id"])


def _sync_subscriptions_of(user_id: int, *, now: datetime) -> None:
    customer = Customer.objects.current().filter(user_id=user_id).first()
    if customer is None:
        return
    for state in get_billing_client().list_subscriptions(customer_id=customer.stripe_customer_id):
        synchronisation.sync_subscription(subscription_id=state.subscription_id, now=now)
