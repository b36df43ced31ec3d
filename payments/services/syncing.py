"""Writing down what Stripe says of a subscription."""

from datetime import datetime

from django.db import transaction

from payments.models import Customer, Subscription
from payments.services import allowances
from payments.stripe.client import get_billing_client
from payments.stripe.states import SubscriptionState


def sync_subscription(*, subscription_id: str, now: datetime) -> Subscription | None:
    """
    Read a subscription afresh and store it; None where its customer is none of ours.

    Raises:
        BillingUnavailable: Stripe is away.
    """
    state = get_billing_client().retrieve_subscription(subscription_id=subscription_id)
    customer = Customer.objects.filter(stripe_customer_id=state.customer_id).first()
    if customer is None:
        return None
    with transaction.atomic(durable=True):
        return store(customer=customer, state=state, asked_at=now)


def store(*, customer: Customer, state: SubscriptionState, asked_at: datetime) -> Subscription:
    """
    Write the state that was asked for at `asked_at`, unless a later answer is stored; runs in the caller's transaction.

    The customer's row is locked, so that states of one user are written one after the other.
    """
    Customer.objects.select_for_update(no_key=True).get(pk=customer.pk)
    fields = {
        "stripe_item_id": state.item_id,
        "status": state.status,
        "amount_minor": state.amount_minor,
        "currency": state.currency,
        "current_period_start": state.current_period_start,
        "current_period_end": state.current_period_end,
        "cancels_at_period_end": state.cancels_at_period_end,
        "ended_at": state.ended_at,
        "synced_at": asked_at,
    }
    known = Subscription.objects.filter(stripe_subscription_id=state.subscription_id)
    if not known.exists():
        Subscription.objects.create(
            user_id=customer.user_id,
            customer=customer,
            stripe_subscription_id=state.subscription_id,
            **fields,
        )
    else:
        known.filter(synced_at__lte=asked_at).update(**fields)
    stored = known.select_related("user").get()
    allowances.follow_subscription(subscription=stored)
    return stored
