"""
Snapshots: the current state of the objects that an event is about, fetched from Stripe and then stored.

An event's body is never applied. A snapshot is fetched outside any transaction and applied inside
one. Events may therefore arrive in any order, and more than once.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TypeVar

from django.db.models import QuerySet

from gateway.common import clock
from payments.errors import (
    AddressRequired,
    BillingInProgress,
    BillingRefused,
    PaymentMethodRequired,
    PaymentProcessing,
    StaleSnapshot,
)
from payments.models import Customer, Payout, Settlement, StripeEvent, Subscription
from payments.services import clawbacks, payouts
from payments.services.synchronisation import (
    MAX_RETRIES,
    db_now,
    note_if_deleted,
    record_sync,
    store_purchase,
    store_subscription,
)
from payments.stripe import get_billing_client
from payments.stripe.client import InvoiceState, ReturnedMoney, SubscriptionState

_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """
    Stripe's responses about one object, requested after `requested_at` and complete at `received_at` (by `db_now`).

    It is empty if `is_foreign`: the customer belongs to another system on the same Stripe account.
    """

    requested_at: datetime
    received_at: datetime
    is_foreign: bool = False
    subscriptions: tuple[SubscriptionState, ...] = ()
    invoice: InvoiceState | None = None
    returned: ReturnedMoney | None = None
    # The payment of which a card network warns.
    warned_payment: str = ""

    def apply(self, *, cause: str, now: datetime) -> StripeEvent.Outcome:
        """
        Store the responses and return the outcome; runs in the caller's transaction.

        Customers of other systems on the same Stripe account are ignored.

        Raises:
            StaleSnapshot: another process may have stored a newer response; fetch the snapshot again.
            UnknownSubscription, RateMissing: a payout is due but cannot be posted yet.
        """
        customers = {customer.stripe_customer_id: customer for customer in self._customers()}
        # Lock every customer before the first decision.
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
        """Return our customers that the responses are about, in the order in which to lock them."""
        stripe_ids = {state.customer_id for state in self.subscriptions}
        payout = clawbacks.payout_of(self.returned) if self.returned is not None else None
        if payout is not None:
            stripe_ids.add(payout.customer.stripe_customer_id)
        if self.invoice is not None:
            stripe_ids.add(self.invoice.customer_id)
        rows = Customer.objects.filter(stripe_customer_id__in=stripe_ids)
        return rows.select_related("user").order_by("pk")


def _warn_of(payment_intent_id: str, *, now: datetime) -> StripeEvent.Outcome:
    """Mark the payment's payout as warned of, once, so that staff are alerted."""
    paid = Payout.objects.paid_by([payment_intent_id])
    if not paid.exists():
        return StripeEvent.Outcome.NOT_OURS
    paid.filter(fraud_warned_at=None).update(fraud_warned_at=now)
    return StripeEvent.Outcome.APPLIED


def fetch_and_apply(*, fetch: Callable[[], Snapshot], apply: Callable[[Snapshot], _Result]) -> _Result:
    """Fetch a snapshot and call `apply`, which stores it in its own transaction; start over if it is stale."""
    for _ in range(MAX_RETRIES):
        snapshot = fetch()
        try:
            return apply(snapshot)
        except StaleSnapshot:
            continue
    raise BillingInProgress("Other requests keep changing the subscription.", retry_after=2)


def fetch_snapshot(*, event_type: str, object_id: str) -> Snapshot:
    """
    Fetch the state of all objects that an event of this type is about.

    After a card was captured, the customer's newest card first becomes the default, and open invoices of its
    subscriptions are retried with it. The snapshot is empty for types that the service does not use, and if an endpoint
    for all types received an event about an object that was deleted since, such as a draft invoice.
    """
    for prefix, fetch in _FETCHERS:
        if event_type.startswith(prefix):
            try:
                return fetch(object_id)
            except BillingRefused as refusal:
                if event_type in EVENT_TYPES or refusal.members.get("reason") != "resource_missing":
                    raise
    return _empty()


def invoice_snapshot(invoice: InvoiceState) -> Snapshot:
    """Return the snapshot of an invoice of ours, with its subscription and the returned money of its payments."""
    if not (invoice.is_ours and _is_ours(invoice.customer_id)):
        return _empty(is_foreign=True)
    client, requested_at = get_billing_client(), db_now()
    subscriptions = (
        (client.retrieve_subscription(subscription_id=invoice.subscription_id),)
        if invoice.subscription_id
        else ()
    )
    returned = (
        clawbacks.read_returned_money(invoice.payment_ids, invoice_id=invoice.invoice_id)
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
    """Return the snapshot of a payment's returned money, with that of the other payments of its payout's invoice."""
    requested_at = db_now()
    payout = Payout.objects.paid_by([payment_intent_id]).first()
    intents, invoice_id = (
        (payout.payment_ids(), payout.stripe_invoice_id) if payout else ([payment_intent_id], "")
    )
    returned = clawbacks.read_returned_money(intents, invoice_id=invoice_id)
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
    # The newest card and not that of this event: events arrive in any order, and must not restore an older card.
    client.use_newest_card(customer_id=customer_id)
    for state in client.list_subscriptions(customer_id=customer_id):
        waits_for_owner = state.latest_invoice in {Settlement.ADDRESS_MISSING, Settlement.STUCK}
        if (state.status in Subscription.COLLECTABLE or waits_for_owner) and state.latest_invoice_id:
            # The card was detached in the meantime, came without the address that is missing, or is not needed.
            with suppress(PaymentMethodRequired, AddressRequired, PaymentProcessing):
                client.pay_invoice(invoice_id=state.latest_invoice_id)
    requested_at = db_now()
    states = client.list_subscriptions(customer_id=customer_id)
    return Snapshot(requested_at=requested_at, received_at=db_now(), subscriptions=tuple(states))


def _fetch_customer(object_id: str) -> Snapshot:
    """If the customer is deleted at Stripe, store that at once: it needs no snapshot, because it is final."""
    customer = Customer.objects.current().filter(stripe_customer_id=object_id).first()
    if customer is not None:
        note_if_deleted(customer=customer, now=clock.now())
    return _empty(is_foreign=not _is_ours(object_id))


def _fetch_returned_money(object_id: str) -> Snapshot:
    payment_intent_id = get_billing_client().payment_intent_of(object_id=object_id)
    return payment_snapshot(payment_intent_id) if payment_intent_id else _empty()


def _fetch_credit_note(object_id: str) -> Snapshot:
    invoice_id = get_billing_client().invoice_of_credit_note(credit_note_id=object_id)
    payout = Payout.objects.filter(stripe_invoice_id=invoice_id).first()
    if payout is None or not payout.stripe_payment_intent_id:
        return _empty(is_foreign=True)  # A later payout reads the credit notes of its invoice.
    return payment_snapshot(payout.stripe_payment_intent_id)


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
    ("credit_note.", _fetch_credit_note),
    ("radar.early_fraud_warning.", _fetch_warned_payment),
)

# The event types that the webhook endpoint subscribes to; the service also fetches undelivered events of these types.
EVENT_TYPES = (
    "invoice.paid",
    "invoice.payment_failed",
    "invoice.payment_action_required",
    "invoice.voided",
    "invoice.marked_uncollectible",
    "invoice.finalization_failed",
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
    "credit_note.created",
    "credit_note.voided",
    "radar.early_fraud_warning.created",
    "radar.early_fraud_warning.updated",
)
