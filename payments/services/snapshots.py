"""
What an event means: read Stripe afresh, then change rows.

An event's body is never applied. `gather` asks Stripe, outside any transaction;
`Facts.apply` writes what was answered, inside one, unless something newer is written. So
the order of events does not matter, and neither does how often one comes. One type of
event also leads to orders: a card that was captured is put to use at Stripe.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from django.db.models import QuerySet

from payments.models import Customer, StripeEvent, Subscription
from payments.services import clawbacks, payouts, synchronisation
from payments.stripe.client import get_billing_client
from payments.stripe.states import InvoiceState, MoneyBack, SubscriptionState


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """
    Stripe's answers, asked for after `since` and complete by `until`; both are a `syncing.mark`.

    There are none where `is_foreign`, because the customer is none of ours.
    """

    since: datetime
    until: datetime
    is_foreign: bool = False
    subscriptions: tuple[SubscriptionState, ...] = ()
    invoice: InvoiceState | None = None
    money_back: MoneyBack | None = None

    def apply(self, *, cause: str, now: datetime) -> StripeEvent.Outcome:
        """
        Write the answers and return the outcome; runs in the caller's transaction.

        Customers of others, who may use the same Stripe account, are passed over.

        Raises:
            AnswerOutdated: the stored answer of somebody else may be newer; gather again.
            UnknownSubscription, RateMissing: a payout is due and cannot be posted yet.
        """
        customers = {customer.stripe_customer_id: customer for customer in self._customers()}
        heard = [
            synchronisation.hear(customer=customer, since=self.since, until=self.until)
            for customer in customers.values()
        ]
        contested = any(heard)
        # A living subscription takes the place of one that is stored as living and has ended.
        for state in sorted(self.subscriptions, key=lambda state: state.status not in Subscription.ENDED):
            if state.customer_id in customers:
                customer = customers[state.customer_id]
                synchronisation.store(customer=customer, state=state, contested=contested, now=now)
        if self.invoice is not None:
            payouts.apply_paid_invoice(invoice=self.invoice, now=now)
        if self.money_back is not None:
            clawbacks.apply_money_back(money=self.money_back, contested=contested, cause=cause, now=now)
        if self.is_foreign or (self.subscriptions and not customers):
            return StripeEvent.Outcome.NOT_OURS
        return StripeEvent.Outcome.APPLIED if customers or self.invoice else StripeEvent.Outcome.NOTHING

    def _customers(self) -> QuerySet[Customer]:
        """Return our customers whom the answers concern, in the order of their locks."""
        named = {state.customer_id for state in self.subscriptions}
        payout = clawbacks.payout_of(money=self.money_back) if self.money_back is not None else None
        if payout is not None:
            named.add(payout.subscription.customer.stripe_customer_id)
        return Customer.objects.filter(stripe_customer_id__in=named).order_by("pk")


def gather(*, event_type: str, object_id: str) -> Facts:
    """
    Ask Stripe for everything that an event of this type is about; other types mean nothing here.

    Where the event is about a captured card, the customer's newest card becomes the default first, and
    open invoices of subscriptions that wait for money are tried with it.

    Raises:
        BillingUnavailable: Stripe is away.
    """
    for prefix, reader in _READERS:
        if event_type.startswith(prefix):
            return reader(object_id)
    return _no_answers()


def of_invoice(invoice: InvoiceState) -> Facts:
    """Return an invoice of a customer of ours with its subscription and what went back of its payment."""
    if not _is_ours(invoice.customer_id):
        return _no_answers(is_foreign=True)
    client, since = get_billing_client(), synchronisation.mark()
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
    return Facts(
        since=since,
        until=synchronisation.mark(),
        subscriptions=subscriptions,
        invoice=invoice,
        money_back=money,
    )


def of_payment(payment_intent_id: str) -> Facts:
    """Return what went back of a payment."""
    since = synchronisation.mark()
    money = get_billing_client().money_back(payment_intent_id=payment_intent_id)
    return Facts(since=since, until=synchronisation.mark(), money_back=money)


def _invoice(object_id: str) -> Facts:
    return of_invoice(get_billing_client().retrieve_invoice(invoice_id=object_id))


def _subscription(object_id: str) -> Facts:
    since = synchronisation.mark()
    state = get_billing_client().retrieve_subscription(subscription_id=object_id)
    return Facts(since=since, until=synchronisation.mark(), subscriptions=(state,))


def _card(object_id: str) -> Facts:
    """Make the newest card the default everywhere, then try what an old card could not pay."""
    client = get_billing_client()
    customer_id, method_id = client.payment_method_of_setup(setup_intent_id=object_id)
    if not _is_ours(customer_id):
        return _no_answers(is_foreign=True)
    if not method_id:
        return _no_answers()
    # Not the card of this event: events come in any order, and an older one must not bring an older card back.
    client.use_newest_card(customer_id=customer_id)
    waiting = {Subscription.Status.INCOMPLETE, Subscription.Status.PAST_DUE, Subscription.Status.UNPAID}
    for state in client.list_subscriptions(customer_id=customer_id):
        if state.status in waiting and state.latest_invoice_id:
            client.pay_open_invoice(invoice_id=state.latest_invoice_id)
    since = synchronisation.mark()
    states = client.list_subscriptions(customer_id=customer_id)
    return Facts(since=since, until=synchronisation.mark(), subscriptions=tuple(states))


def _money(object_id: str) -> Facts:
    payment = get_billing_client().payment_intent_of(object_id=object_id)
    return of_payment(payment) if payment else _no_answers()


def _no_answers(*, is_foreign: bool = False) -> Facts:
    moment = synchronisation.mark()
    return Facts(since=moment, until=moment, is_foreign=is_foreign)


def _is_ours(customer_id: str) -> bool:
    return Customer.objects.filter(stripe_customer_id=customer_id).exists()


_READERS: tuple[tuple[str, Callable[[str], Facts]], ...] = (
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
