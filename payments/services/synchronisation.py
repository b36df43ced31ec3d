"""
Snapshots: a subscription, an invoice or a payment is fetched from Stripe and then stored.

An event's body is never applied. A snapshot is fetched outside any transaction and applied inside
one, so neither the order of events nor repetition matters.

Two processes may read from Stripe in one order and write in the other. So each takes `db_now` before
and after its request, and `record_sync` decides under the customer's lock whether the answer is stale:
a newer answer arrived after ours was requested. A stale answer that agrees with the rows is accepted;
one that differs is fetched again.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, TypeVar
from uuid import UUID

from django.db import connection, transaction
from django.db.models import Q, QuerySet

from gateway.common import clock
from gateway.common.tasks import Sweep
from payments.errors import BillingInProgress, PaymentMethodRequired, StaleSnapshot
from payments.models import Customer, Payout, Purchase, StripeEvent, Subscription
from payments.services import clawbacks, payouts
from payments.stripe import get_billing_client
from payments.stripe.client import InvoiceState, ReturnedMoney, SubscriptionState

# How often a stale answer is fetched again while other processes keep writing.
MAX_RETRIES = 5
_Result = TypeVar("_Result")


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

    A subscription without an item of our product is written only where we know it, or where one `is_paid` that was
    ours: for us it has ended.

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
        # What was previewed for other terms is no longer the next charge.
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
    """Fetch a subscription, store it and return its state; None where its customer is not ours."""
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
    Store that Stripe has deleted the customer, and the end of its subscriptions; False where it has not.

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """
    Stripe's answers about one object, requested after `requested_at` and complete by `received_at`, by `db_now`.

    It is empty where `is_foreign`: the customer belongs to another system on the same Stripe account.
    """

    requested_at: datetime
    received_at: datetime
    is_foreign: bool = False
    subscriptions: tuple[SubscriptionState, ...] = ()
    invoice: InvoiceState | None = None
    returned: ReturnedMoney | None = None
    # The payment that a card network warns of.
    warned_payment: str = ""

    def apply(self, *, cause: str, now: datetime) -> StripeEvent.Outcome:
        """
        Write the answers and return the outcome; runs in the caller's transaction.

        Customers of other systems on the same Stripe account are ignored.

        Raises:
            StaleSnapshot: another process may have stored a newer answer; fetch the snapshot again.
            UnknownSubscription, RateMissing: a payout is due but cannot be posted yet.
        """
        customers = {customer.stripe_customer_id: customer for customer in self._customers()}
        # Every customer is locked before the first decision.
        staleness = [
            record_sync(customer=customer, requested_at=self.requested_at, received_at=self.received_at)
            for customer in customers.values()
        ]
        is_stale = any(staleness)
        for state in self.subscriptions:
            if state.customer_id in customers:
                customer = customers[state.customer_id]
                is_paid = self.invoice is not None and self.invoice.subscription_id == state.subscription_id
                store_subscription(
                    customer=customer, state=state, is_stale=is_stale, now=now, is_paid=is_paid
                )
        if self.invoice is not None:
            store_purchase(customer=customers[self.invoice.customer_id], invoice=self.invoice, now=now)
            payouts.apply_paid_invoice(invoice=self.invoice, now=now)
        if self.returned is not None:
            clawbacks.apply_returned_money(returned=self.returned, is_stale=is_stale, cause=cause, now=now)
        if self.warned_payment:
            return _warn_of(self.warned_payment, now=now)
        if self.is_foreign or (self.subscriptions and not customers):
            return StripeEvent.Outcome.NOT_OURS
        return StripeEvent.Outcome.APPLIED if customers or self.invoice else StripeEvent.Outcome.NOTHING

    def _customers(self) -> QuerySet[Customer]:
        """Return our customers that the answers concern, in the order of their locks."""
        stripe_ids = {state.customer_id for state in self.subscriptions}
        payout = clawbacks.payout_of(self.returned) if self.returned is not None else None
        if payout is not None:
            stripe_ids.add(payout.customer.stripe_customer_id)
        if self.invoice is not None:
            stripe_ids.add(self.invoice.customer_id)
        rows = Customer.objects.filter(stripe_customer_id__in=stripe_ids)
        return rows.select_related("user").order_by("pk")


def _warn_of(payment_intent_id: str, *, now: datetime) -> StripeEvent.Outcome:
    """Mark the payment's payout, once, so that staff are alerted."""
    paid = Payout.objects.paid_by([payment_intent_id])
    if not paid.exists():
        return StripeEvent.Outcome.NOT_OURS
    paid.filter(fraud_warned_at=None).update(fraud_warned_at=now)
    return StripeEvent.Outcome.APPLIED


def fetch_and_apply(*, fetch: Callable[[], Snapshot], apply: Callable[[Snapshot], _Result]) -> _Result:
    """Fetch a snapshot and apply it in a transaction of `apply`; start over where it is stale."""
    for _ in range(MAX_RETRIES):
        snapshot = fetch()
        try:
            return apply(snapshot)
        except StaleSnapshot:
            continue
    raise BillingInProgress("Other requests keep changing the subscription.", retry_after=2)


def fetch_snapshot(*, event_type: str, object_id: str) -> Snapshot:
    """
    Fetch everything that an event of this type concerns; the snapshot of other types is empty.

    For a captured card, the customer's newest card first becomes the default, and open invoices of its subscriptions
    are retried with it.
    """
    for prefix, fetch in _FETCHERS:
        if event_type.startswith(prefix):
            return fetch(object_id)
    return _empty()


def invoice_snapshot(invoice: InvoiceState) -> Snapshot:
    """Return an invoice of ours with its subscription and the returned money of its payment."""
    if not (invoice.is_ours and _is_ours(invoice.customer_id)):
        return _empty(is_foreign=True)
    client, requested_at = get_billing_client(), db_now()
    subscriptions = (
        (client.retrieve_subscription(subscription_id=invoice.subscription_id),)
        if invoice.subscription_id
        else ()
    )
    returned = (
        clawbacks.read_returned_money(invoice.payment_ids)
        if payouts.is_payable(invoice=invoice) and invoice.payment_ids
        else None
    )
    return Snapshot(
        requested_at=requested_at,
        received_at=db_now(),
        subscriptions=subscriptions,
        invoice=invoice,
        returned=returned,
    )


def payment_snapshot(payment_intent_id: str) -> Snapshot:
    """Return the returned money of a payment, with that of the other payments of its payout's invoice."""
    requested_at = db_now()
    payout = Payout.objects.paid_by([payment_intent_id]).first()
    returned = clawbacks.read_returned_money(payout.payment_ids() if payout else [payment_intent_id])
    return Snapshot(requested_at=requested_at, received_at=db_now(), returned=returned)


def _fetch_invoice(object_id: str) -> Snapshot:
    return invoice_snapshot(get_billing_client().retrieve_invoice(invoice_id=object_id))


def _fetch_subscription(object_id: str) -> Snapshot:
    requested_at = db_now()
    state = get_billing_client().retrieve_subscription(subscription_id=object_id)
    is_known = state.is_ours or Subscription.objects.filter(stripe_subscription_id=object_id).exists()
    return Snapshot(
        requested_at=requested_at,
        received_at=db_now(),
        is_foreign=not is_known,
        subscriptions=(state,) if is_known else (),
    )


def _fetch_card(object_id: str) -> Snapshot:
    """Make the newest card the default everywhere, then retry invoices that an older card could not pay."""
    client = get_billing_client()
    customer_id, method_id = client.payment_method_of_setup(setup_intent_id=object_id)
    if not _is_ours(customer_id):
        return _empty(is_foreign=True)
    if not method_id or client.is_customer_deleted(customer_id=customer_id):
        return _empty()
    # Not the card of this event: events arrive in any order, and an older event must not restore an older card.
    client.use_newest_card(customer_id=customer_id)
    for state in client.list_subscriptions(customer_id=customer_id):
        if state.status in Subscription.COLLECTABLE and state.latest_invoice_id:
            with suppress(PaymentMethodRequired):  # The card was detached meanwhile.
                client.pay_invoice(invoice_id=state.latest_invoice_id)
    requested_at = db_now()
    states = client.list_subscriptions(customer_id=customer_id)
    return Snapshot(requested_at=requested_at, received_at=db_now(), subscriptions=tuple(states))


def _fetch_customer(object_id: str) -> Snapshot:
    """Store at once that a customer is deleted, since a deletion is final."""
    customer = Customer.objects.current().filter(stripe_customer_id=object_id).first()
    if customer is not None:
        note_if_deleted(customer=customer, now=clock.now())
    return _empty(is_foreign=not _is_ours(object_id))


def _fetch_returned_money(object_id: str) -> Snapshot:
    payment_intent_id = get_billing_client().payment_intent_of(object_id=object_id)
    return payment_snapshot(payment_intent_id) if payment_intent_id else _empty()


def _fetch_warned_payment(object_id: str) -> Snapshot:
    payment_intent_id = get_billing_client().payment_intent_of(object_id=object_id)
    return replace(_empty(), warned_payment=payment_intent_id)


def _empty(*, is_foreign: bool = False) -> Snapshot:
    now = db_now()
    return Snapshot(requested_at=now, received_at=now, is_foreign=is_foreign)


def _is_ours(customer_id: str) -> bool:
    return Customer.objects.filter(stripe_customer_id=customer_id).exists()


_FETCHERS: tuple[tuple[str, Callable[[str], Snapshot]], ...] = (
    ("invoice.", _fetch_invoice),
    ("customer.deleted", _fetch_customer),
    ("customer.subscription.", _fetch_subscription),
    ("setup_intent.succeeded", _fetch_card),
    ("refund.", _fetch_returned_money),
    ("charge.refund", _fetch_returned_money),
    ("charge.dispute.", _fetch_returned_money),
    ("radar.early_fraud_warning.", _fetch_warned_payment),
)

# The event types that the webhook endpoint subscribes to, also used to fetch undelivered events.
EVENT_TYPES = (
    "invoice.paid",
    "invoice.payment_failed",
    "invoice.payment_action_required",
    "invoice.voided",
    "invoice.marked_uncollectible",
    "customer.deleted",
    "customer.subscription.created",
    "customer.subscription.updated",
    "customer.subscription.deleted",
    "customer.subscription.paused",
    "customer.subscription.resumed",
    "setup_intent.succeeded",
    "refund.created",
    "refund.updated",
    "refund.failed",
    "charge.dispute.created",
    "charge.dispute.funds_withdrawn",
    "charge.dispute.funds_reinstated",
    "charge.dispute.closed",
    "radar.early_fraud_warning.created",
    "radar.early_fraud_warning.updated",
)
