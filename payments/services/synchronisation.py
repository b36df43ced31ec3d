"""
Stores the state of subscriptions and purchases at Stripe; an older response never overwrites a newer one.

Two processes may read from Stripe in one order and write in the other. Each therefore reads `db_now` before and after
its request. Under the customer's lock, `record_sync` decides whether a response is stale, which means that another
response arrived after this one was requested. A stale response that agrees with the rows is accepted; if it differs,
the object is fetched again.
"""

from collections.abc import Callable
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connection, transaction
from django.db.models import Q

from gateway.common.tasks import Sweep
from payments.errors import BillingInProgress, StaleSnapshot
from payments.models import Customer, Purchase, Subscription
from payments.services import payouts
from payments.stripe import get_billing_client
from payments.stripe.client import InvoiceState, SubscriptionState

# How often to fetch again after a stale response, while other processes keep writing.
MAX_RETRIES = 5


def db_now() -> datetime:
    """Return the time of the database's clock, which all processes share."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        row: tuple[datetime] = cursor.fetchone()
    return row[0]


def record_sync(*, customer: Customer, requested_at: datetime, received_at: datetime) -> bool:
    """
    Lock the customer and store when its newest response arrived; runs in the caller's transaction.

    Returns whether responses requested and received at these times are stale: one that arrived after `requested_at` is
    already stored. The lock serialises the writes for one customer.
    """
    last_synced_at = Customer.objects.select_for_update(no_key=True).get(pk=customer.pk).last_synced_at
    if last_synced_at is None or last_synced_at < received_at:
        Customer.objects.filter(pk=customer.pk).update(last_synced_at=received_at)
    return last_synced_at is not None and last_synced_at >= requested_at


def store_subscription(
    *, customer: Customer, state: SubscriptionState, is_stale: bool, now: datetime, is_paid: bool = False
) -> None:
    """
    Store the state; runs in the caller's transaction, after `record_sync`.

    A subscription without an item of our product is stored as ended, but only if it has a row, or if `is_paid`, which
    means that it was ours when it was paid.

    Raises:
        StaleSnapshot: the state is stale and differs from the stored one.
    """
    rows = Subscription.objects.filter(stripe_subscription_id=state.subscription_id)
    if not (state.is_ours or is_paid or rows.exists()):
        return
    fields = _fields_of(state) if state.is_ours else _fields_of_lost(state, rows.first(), now=now)
    if is_stale and not rows.filter(**fields).exists():
        raise StaleSnapshot
    if state.is_ours:
        # The stored preview does not apply to other terms.
        rows.exclude(**{name: fields[name] for name in _TERMS}).update(
            next_minor=None, next_previewed_at=None
        )
    if not rows.update(**fields, synced_at=now):
        Subscription.objects.create(
            user_id=customer.user_id,
            customer=customer,
            stripe_subscription_id=state.subscription_id,
            synced_at=now,
            **fields,
        )
    payouts.update_allowance(user=customer.user)


_TERMS = ("amount_minor", "currency", "stripe_item_id", "current_period_end")


def _fields_of(state: SubscriptionState) -> dict[str, Any]:
    return {
        "stripe_item_id": state.item_id,
        "status": state.status,
        "amount_minor": state.amount_minor,
        "currency": state.currency,
        "current_period_start": state.current_period_start,
        "current_period_end": state.current_period_end,
        "cancels_at_period_end": state.cancels_at_period_end,
        "cancels_at": state.cancels_at,
        "is_resting": state.is_resting,
        "rests_until": state.rests_until,
        "latest_invoice": state.latest_invoice,
        "interval": state.interval,
        "is_invoiced": state.is_invoiced,
        "ended_at": state.ended_at,
    }


def store_purchase(*, customer: Customer, invoice: InvoiceState, now: datetime) -> None:
    """
    Store the outcome of a one-off invoice; runs in the caller's transaction, after `record_sync`.

    An invoice that staff created at Stripe becomes a purchase once its money was collected. A paid purchase stays paid.
    """
    status = _ENDS.get(invoice.status)
    if invoice.subscription_id or status is None:
        return
    ended = {"stripe_invoice_id": invoice.invoice_id, "status": status, "finished_at": now}
    named = Q(stripe_invoice_id=invoice.invoice_id) | Q(stripe_invoice_id="", pk=_uuid_of(invoice.operation))
    rows = Purchase.objects.filter(named, customer=customer)
    if rows.exclude(status=Purchase.Status.PAID).update(**ended) or rows.exists():
        return
    if invoice.collected_minor > 0:
        amount_minor = invoice.collected_minor + invoice.tax_minor
        fields = {"amount_minor": amount_minor, "currency": invoice.currency, "created_at": now}
        Purchase.objects.create(user_id=customer.user_id, customer=customer, **fields, **ended)


_ENDS = {
    "paid": Purchase.Status.PAID,
    "void": Purchase.Status.VOID,
    "uncollectible": Purchase.Status.VOID,
}


def _uuid_of(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None


def _fields_of_lost(state: SubscriptionState, row: Subscription | None, *, now: datetime) -> dict[str, Any]:
    """Return the fields of a subscription from which our product was removed; a stored one keeps its other values."""
    ended = {
        "status": Subscription.Status.CANCELED,
        "ended_at": (row and row.ended_at) or state.ended_at or now,
    }
    return ended if row is not None else {**_fields_of(state), **ended}


def refresh(*, customer: Customer, subscription_id: str, now: datetime) -> SubscriptionState:
    """Fetch a subscription of this customer, store it and return the stored state."""
    requested_at = db_now()
    state = get_billing_client().retrieve_subscription(subscription_id=subscription_id)
    return store_latest(customer=customer, state=state, requested_at=requested_at, now=now)


def sync_subscription(*, subscription_id: str, now: datetime) -> SubscriptionState | None:
    """Fetch a subscription, store it and return its state; None if its customer is not ours."""
    requested_at = db_now()
    state = get_billing_client().retrieve_subscription(subscription_id=subscription_id)
    customer = Customer.objects.filter(stripe_customer_id=state.customer_id).first()
    if customer is None:
        return None
    return store_latest(customer=customer, state=state, requested_at=requested_at, now=now)


def store_latest(
    *,
    customer: Customer,
    state: SubscriptionState,
    requested_at: datetime,
    now: datetime,
    on_stored: Callable[[SubscriptionState], object] | None = None,
) -> SubscriptionState:
    """
    Store a state requested at `requested_at`, or fetch and store a newer one if it is stale; return the stored state.

    `on_stored` runs in the same transaction.
    """
    for _ in range(MAX_RETRIES):
        received_at = db_now()
        try:
            with transaction.atomic(durable=True):
                is_stale = record_sync(customer=customer, requested_at=requested_at, received_at=received_at)
                store_subscription(customer=customer, state=state, is_stale=is_stale, now=now)
                if on_stored is not None:
                    on_stored(state)
        except StaleSnapshot:
            requested_at = db_now()
            state = get_billing_client().retrieve_subscription(subscription_id=state.subscription_id)
        else:
            return state
    raise BillingInProgress("Other requests keep changing the subscription.", retry_after=2)


def note_if_deleted(*, customer: Customer, now: datetime) -> bool:
    """
    If the customer is deleted at Stripe, store that and the end of its subscriptions; return whether it is.

    A customer unknown to Stripe does not count as deleted: the key probably belongs to another account.
    """
    if not get_billing_client().is_customer_deleted(customer_id=customer.stripe_customer_id):
        return False
    for subscription in customer.subscriptions.live():
        sync_subscription(subscription_id=subscription.stripe_subscription_id, now=now)
    Customer.objects.current().filter(pk=customer.pk).update(deleted_at=now)
    return True


def refresh_subscriptions(*, now: datetime) -> int:
    """
    Store every live subscription of our customers, as Stripe lists them; return how many were stored.

    Includes subscriptions that have no row yet, and rows that are live but not in Stripe's list.
    """
    sweep = Sweep("subscription")
    listed, requested_at = set(), db_now()
    for state in get_billing_client().live_subscriptions():
        customer = Customer.objects.filter(stripe_customer_id=state.customer_id).first()
        if customer is None:
            continue
        listed.add(state.subscription_id)
        with sweep.item(state.subscription_id):
            store_latest(customer=customer, state=state, requested_at=requested_at, now=now)
    live = Subscription.objects.live().values_list("stripe_subscription_id", flat=True)
    for subscription_id in sorted(set(live) - listed):
        with sweep.item(subscription_id):
            sync_subscription(subscription_id=subscription_id, now=now)
    sweep.finish()
    return sweep.succeeded
