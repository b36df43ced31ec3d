"""What is answered about an invoice and a subscription."""

from payments.stripe.client import CustomerState, InvoiceState, SubscriptionState
from tests.fakes.billing.things import Customer, Invoice, Subscription


def customer_state(found: Customer) -> CustomerState:
    """Return a customer, and whom it was made for."""
    return CustomerState(
        customer_id=found.id,
        user_id=found.user_id,
        profile_address=found.profile_address,
        created_at=found.created,
        is_live=False,
    )


def subscription_state(found: Subscription) -> SubscriptionState:
    """Return a subscription, with what its first payment waits for."""
    latest = found.invoices[-1]
    waits = found.status == "incomplete"
    return SubscriptionState(
        subscription_id=found.id,
        customer_id=found.customer.id,
        item_id=found.item_id,
        status=found.status,
        amount_minor=found.amount,
        currency=found.currency,
        current_period_start=found.boundary(found.period),
        current_period_end=found.boundary(found.period + 1),
        cancels_at_period_end=found.cancels,
        ended_at=found.ended_at,
        latest_invoice_id=latest.id,
        payment_client_secret=f"{latest.intent}_secret_{latest.id}" if waits and latest.asks else "",
        decline_code=latest.failure if waits else "",
    )


def invoice_state(found: Invoice) -> InvoiceState:
    """Return an invoice, of which only collected money counts."""
    subscription = found.subscription
    return InvoiceState(
        invoice_id=found.id,
        customer_id=subscription.customer.id,
        subscription_id=subscription.id,
        status=found.status,
        billing_reason=found.reason,
        currency=subscription.currency,
        collected_minor=found.collected,
        period_start=found.period[0],
        period_end=found.period[1],
        payment_intent_id=found.intent,
        paid_at=found.paid_at,
        is_live=False,
    )
