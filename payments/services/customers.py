"""Customers: one per user, also when two requests ask at once."""

from datetime import datetime

from django.db import transaction

from payments.models import BillingOperation, Customer
from payments.services import operations
from payments.stripe.client import get_billing_client
from users.models import User


def ensure_customer(*, user: User, now: datetime) -> Customer:
    """
    Return the user's customer, made at Stripe on the first call.

    Raises:
        BillingUnavailable: Stripe is away; a repeat finishes what was begun.
        BillingInProgress: another change of this user is under way.
    """
    known = Customer.objects.filter(user_id=user.pk).first()
    if known is not None:
        return known
    operation = operations.begin(
        user=user,
        kind=BillingOperation.Kind.CREATE_CUSTOMER,
        parameters={"address": user.profile_address},
        now=now,
    )
    # A faster request has already made the customer; do not carry out this new operation.
    known = Customer.objects.filter(user_id=user.pk).first()
    if known is not None:
        operations.finish(operation=operation, outcome=known.stripe_customer_id, now=now)
        return known
    return create(operation=operation, now=now)


def create(*, operation: BillingOperation, now: datetime) -> Customer:
    """
    Ask Stripe for the operation's customer and store it; safe to repeat with the same operation.

    Raises:
        BillingUnavailable: Stripe is away; the operation stays pending.
        DomainError: Stripe refused for good; the operation is over.
    """
    with operations.closed_if_refused(operation=operation, now=now):
        customer_id = get_billing_client().create_customer(
            profile_address=operation.parameters["address"],
            user_id=str(operation.user_id),
            key=str(operation.pk),
        )
    with transaction.atomic(durable=True):
        Customer.objects.bulk_create(
            [Customer(user_id=operation.user_id, stripe_customer_id=customer_id)], ignore_conflicts=True
        )
        operations.finish(operation=operation, outcome=customer_id, now=now)
    return Customer.objects.get(user_id=operation.user_id)


def setup_secret(*, user: User, now: datetime) -> str:
    """
    Return the client secret of a new setup intent, with which the wallet captures a card.

    Raises:
        BillingUnavailable, BillingInProgress: as `ensure_customer`.
    """
    customer = ensure_customer(user=user, now=now)
    return get_billing_client().create_setup_intent(customer_id=customer.stripe_customer_id)
