"""
What an event means: read Stripe afresh, then change rows.

An event's body is never applied. `gather` asks Stripe, outside any transaction;
`Facts.apply` writes what was answered, inside one. So the order of events does not
matter, and neither does how often one comes.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from payments.models import Customer, Subscription
from payments.services import clawbacks, payouts, syncing
from payments.stripe.client import get_billing_client
from payments.stripe.states import InvoiceState, MoneyBack, SubscriptionState


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Fresh answers of Stripe, asked for at `asked_at`."""

    asked_at: datetime
    subscriptions: tuple[SubscriptionState, ...] = ()
    invoice: InvoiceState | None = None
    money_back: MoneyBack | None = None

    def apply(self, *, cause: str, now: datetime) -> None:
        """Write the answers; runs in the caller's transaction. Customers of others are passed over."""
        for state in self.subscriptions:
            customer = Customer.objects.filter(stripe_customer_id=state.customer_id).first()
            if customer is not None:
                syncing.store(customer=customer, state=state, asked_at=self.asked_at)
        if self.invoice is not None:
            payouts.apply_paid_invoice(invoice=self.invoice, now=now)
        if self.money_back is not None:
            clawbacks.apply_money_back(money=self.money_back, cause=cause, now=now)


def gather(*, event_type: str, object_id: str, event_id: str, now: datetime) -> Facts:
    """
    Ask Stripe for everything that an event of this type is about; other types mean nothing here.

    Raises:
        BillingUnavailable: Stripe is away.
    """
    for prefix, reader in _READERS:
        if event_type.startswith(prefix):
            return reader(object_id, event_id, now)
    return Facts(asked_at=now)


def of_invoice(invoice: InvoiceState, *, now: datetime) -> Facts:
    """Return an invoice with its subscription and what went back of its payment."""
    client = get_billing_client()
    subscriptions = (
        (client.retrieve_subscription(subscription_id=invoice.subscription_id),)
        if invoice.subscription_id
        else ()
    )
    money = (
        client.money_back(payment_intent_id=invoice.payment_intent_id)
        if payouts.is_payable(invoice=invoice) and invoice.payment_intent_id
        else None
    )
    return Facts(asked_at=now, subscriptions=subscriptions, invoice=invoice, money_back=money)


def _invoice(object_id: str, event_id: str, now: datetime) -> Facts:
    return of_invoice(get_billing_client().retrieve_invoice(invoice_id=object_id), now=now)


def _subscription(object_id: str, event_id: str, now: datetime) -> Facts:
    state = get_billing_client().retrieve_subscription(subscription_id=object_id)
    return Facts(asked_at=now, subscriptions=(state,))


def _card(object_id: str, event_id: str, now: datetime) -> Facts:
    """Make the captured card the default everywhere, then try what an old card could not pay."""
    client = get_billing_client()
    customer_id, method_id = client.payment_method_of_setup(setup_intent_id=object_id)
    if not method_id or not Customer.objects.filter(stripe_customer_id=customer_id).exists():
        return Facts(asked_at=now)
    client.use_payment_method(customer_id=customer_id, payment_method_id=method_id)
    waiting = {Subscription.Status.INCOMPLETE, Subscription.Status.PAST_DUE, Subscription.Status.UNPAID}
    states = client.list_subscriptions(customer_id=customer_id)
    for state in states:
        if state.status in waiting and state.latest_invoice_id:
            key = f"{event_id}-{state.latest_invoice_id}"
            client.pay_open_invoice(invoice_id=state.latest_invoice_id, key=key)
    return Facts(asked_at=now, subscriptions=tuple(client.list_subscriptions(customer_id=customer_id)))


def _money(object_id: str, event_id: str, now: datetime) -> Facts:
    client = get_billing_client()
    payment = client.payment_intent_of(object_id=object_id)
    return Facts(asked_at=now, money_back=client.money_back(payment_intent_id=payment) if payment else None)


_READERS: tuple[tuple[str, Callable[[str, str, datetime], Facts]], ...] = (
    ("invoice.", _invoice),
    ("customer.subscription.", _subscription),
    ("setup_intent.succeeded", _card),
    ("refund.", _money),
    ("charge.refund", _money),
    ("charge.dispute.", _money),
)

# What the webhook endpoint subscribes to, and what is asked for when deliveries were lost.
EVENT_TYPES = (
    "invoice.paid",
    "invoice.payment_failed",
    "invoice.payment_action_required",
    "invoice.voided",
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
)
