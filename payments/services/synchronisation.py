"""
Storing what Stripe says about a subscription.

Two processes may ask Stripe one after the other and write in the other order. So whoever
asks takes a `mark` before and another after, and `hear` returns under the customer's lock whether
an answer was stored that may be newer: it had not arrived yet when ours was asked for. Where our
answer agrees with the rows it is then as good as any; where it differs, Stripe is asked again.
"""

from datetime import datetime

from django.db import connection, transaction

from payments.errors import AnswerOutdated, BillingInProgress
from payments.models import Customer, Subscription
from payments.services import payouts
from payments.stripe.client import get_billing_client
from payments.stripe.states import SubscriptionState

# How often Stripe is asked again while others keep writing.
LOOKS = 5


def mark() -> datetime:
    """Return the time by the one clock that all processes share, the database's; take it around asking Stripe."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        row: tuple[datetime] = cursor.fetchone()
    return row[0]


def hear(*, customer: Customer, since: datetime, until: datetime) -> bool:
    """
    Lock the customer and note when the newest answer had arrived; runs in the caller's transaction.

    Returns whether the answers that were asked for after `since` and had arrived by `until` are
    contested: another that arrived after `since` is stored. States of one customer are stored one
    after the other.
    """
    known = Customer.objects.select_for_update(no_key=True).get(pk=customer.pk)
    contested = known.heard_at is not None and known.heard_at >= since
    if known.heard_at is None or known.heard_at < until:
        Customer.objects.filter(pk=customer.pk).update(heard_at=until)
    return contested


def sync_subscription(*, subscription_id: str, now: datetime) -> Subscription | None:
    """
    Read a subscription afresh and store it; None where its customer is none of ours.

    Raises:
        BillingUnavailable: Stripe is away.
        BillingInProgress: others keep changing it.
    """
    for _ in range(LOOKS):
        since = mark()
        state = get_billing_client().retrieve_subscription(subscription_id=subscription_id)
        until = mark()
        customer = Customer.objects.filter(stripe_customer_id=state.customer_id).first()
        if customer is None:
            return None
        try:
            with transaction.atomic(durable=True):
                contested = hear(customer=customer, since=since, until=until)
                return store(customer=customer, state=state, contested=contested, now=now)
        except AnswerOutdated:
            continue
    raise BillingInProgress("Other requests keep changing the subscription.", retry_after=2)


def store(*, customer: Customer, state: SubscriptionState, contested: bool, now: datetime) -> Subscription:
    """
    Write the state; runs in the caller's transaction, after `hear`.

    Raises:
        AnswerOutdated: the state is contested and differs from what is stored.
    """
    fields = {
        "stripe_item_id": state.item_id,
        "status": state.status,
        "amount_minor": state.amount_minor,
        "currency": state.currency,
        "current_period_start": state.current_period_start,
        "current_period_end": state.current_period_end,
        "cancels_at_period_end": state.cancels_at_period_end,
        "ended_at": state.ended_at,
    }
    known = Subscription.objects.filter(stripe_subscription_id=state.subscription_id)
    if contested and not known.filter(**fields).exists():
        raise AnswerOutdated
    if not known.update(**fields, synced_at=now):
        Subscription.objects.create(
            user_id=customer.user_id,
            customer=customer,
            stripe_subscription_id=state.subscription_id,
            synced_at=now,
            **fields,
        )
    stored = known.select_related("user", "customer").get()
    payouts.follow_payouts(user=stored.user)
    return stored
