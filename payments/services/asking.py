"""
Ask Stripe about a subscription, outside any transaction, and store the answer.

Either for a change, which an operation has recorded before, or for a look at its state.
"""

from datetime import datetime

from django.db import transaction

from payments.errors import AnswerOutdated, BillingInProgress
from payments.models import BillingOperation, Customer
from payments.services import operations, syncing
from payments.stripe.client import get_billing_client
from payments.stripe.states import SubscriptionState


def carry_out(*, operation: BillingOperation, customer: Customer, now: datetime) -> SubscriptionState:
    """
    Ask Stripe for the operation, with its id as the key, and apply the answer.

    Raises:
        BillingUnavailable: Stripe is away; the operation stays pending.
        BillingInProgress: others keep changing the subscription.
        DomainError: Stripe refused for good; the operation is over.
    """
    since = syncing.mark()
    with operations.closed_if_refused(operation=operation, now=now):
        state = _ask(operation)
    return _settle(customer=customer, state=state, since=since, operation=operation, now=now)


def _ask(operation: BillingOperation) -> SubscriptionState:
    client, asked, key = get_billing_client(), operation.parameters, str(operation.pk)
    match operation.kind:
        case BillingOperation.Kind.CREATE_SUBSCRIPTION:
            return client.create_subscription(
                customer_id=asked["customer"],
                amount_minor=asked["amount_minor"],
                currency=asked["currency"],
                cancels_at_period_end=asked["cancels_at_period_end"],
                key=key,
            )
        case BillingOperation.Kind.UPDATE_SUBSCRIPTION:
            return client.update_subscription(
                subscription_id=asked["subscription"],
                item_id=asked["item"],
                amount_minor=asked["amount_minor"],
                currency=asked["currency"],
                cancels_at_period_end=asked["cancels_at_period_end"],
                key=key,
            )
        case BillingOperation.Kind.CANCEL_SUBSCRIPTION:
            return client.cancel_subscription(subscription_id=asked["subscription"], key=key)
    raise ValueError(f"{operation.kind} is no change of a subscription")


def look(*, customer: Customer, subscription_id: str, now: datetime) -> SubscriptionState:
    """
    Read the subscription afresh, store it, and return what was stored.

    Raises:
        BillingUnavailable: Stripe is away.
        BillingInProgress: others keep changing it.
    """
    since = syncing.mark()
    state = get_billing_client().retrieve_subscription(subscription_id=subscription_id)
    return _settle(customer=customer, state=state, since=since, operation=None, now=now)


def _settle(
    *,
    customer: Customer,
    state: SubscriptionState,
    since: datetime,
    operation: BillingOperation | None,
    now: datetime,
) -> SubscriptionState:
    """Write the answer, finish the operation and return what was written: a later answer where others wrote since."""
    for _ in range(syncing.LOOKS):
        until = syncing.mark()
        try:
            with transaction.atomic(durable=True):
                contested = syncing.hear(customer=customer, since=since, until=until)
                syncing.store(customer=customer, state=state, contested=contested, now=now)
                if operation is not None:
                    operations.finish(operation=operation, outcome=state.subscription_id, now=now)
        except AnswerOutdated:
            since = syncing.mark()
            state = get_billing_client().retrieve_subscription(subscription_id=state.subscription_id)
        else:
            return state
    raise BillingInProgress("Other requests keep changing the subscription.", retry_after=2)
