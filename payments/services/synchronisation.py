"""
Stores subscriptions and purchases as Stripe has them; an older answer never overwrites a newer one.

Two processes may read from Stripe in one order and write in the other. So each reads `db_now` before and after its
request, and `record_sync` decides under the customer's lock whether an answer is stale: another answer arrived after
this one was requested. A stale answer that agrees with the rows is accepted; one that differs is fetched again.
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

# How often a stale answer is fetched again while other processes keep writing.
MAX_RETRIES = 5


def db_now() -> datetime:
    """Return the time of the database's clock, which all processes share."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        row: tuple[datetime] = cursor.fetchone()
    return row[0]


def record_sync(*, customer: Customer, requested_at: datetime, received_at: datetime) -> bool:
    """
    Lock the customer and store when its newest answer arrived; runs in the caller's transaction.

    Returns whether answers requested and received at these times are stale: an answer that arrived after
    `requested_at` is stored. The lock serialises the states of one customer.
    """
    last_synced_at = Customer.objects.select_for_update(no_key=True).get(pk=customer.pk).last_synced_at
    if last_synced_at is None or last_synced_at < received_at:
        Customer.objects.filter(pk=customer.pk).update(last_synced_at=received_at)
    return last_synced_at is not None and last_synced_at >= requested_at


def store_subscription(
    *, customer: Customer, state: SubscriptionState, is_stale: bool, now: datetime, is_paid: bool = False
) -> None:
    """
    Write the state; runs in the caller's transaction, after `record_sync`.

    A subscription without an item of our product is stored as ended, and only if we have its row, or if `is_paid`: it
    was ours when it was paid.

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
        # A preview for other terms does not show the next charge.
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
        "ended_at": state.ended_at,
    }


def store_purchase(*, customer: Customer, invoice: InvoiceState, now: datetime) -> None:
    """
    Write how a one-off invoice ended; runs in the caller's transaction, after `record_sync`.

    One that staff made at Stripe becomes a purchase once it brought money. A paid purchase stays paid.
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
    """Return the fields of a subscription that has lost our product; a known one keeps what it had until then."""
    ended = {
        "status": Subscription.Status.CANCELED,
        "ended_at": (row and row.ended_at) or state.ended_at or now,
    }
    return ended if row is not None else {**_fields_of(state), **ended}


def refresh(*, customer: Customer, subscription_id: str, now: datetime) -> SubscriptionState:
    """Fetch a subscription of this customer of ours, store it and return the stored state."""
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
    Store a state requested at `requested_at`, or a newer one where it is stale; return the stored state.

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
    Store that Stripe has deleted the customer, and the end of its subscriptions; False if it has not.

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

    Also those that only Stripe has, and those that are live only here.
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
