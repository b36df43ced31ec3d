"""Customers: one per user, also under concurrency. A new one replaces a customer that is deleted at Stripe."""

from collections.abc import Callable
from datetime import datetime
from typing import TypeVar

from payments.errors import BillingRefused
from payments.models import BillingOperation, Customer
from payments.services import operations, synchronisation
from payments.stripe import get_billing_client
from users.models import User

_Result = TypeVar("_Result")


def ensure_customer(*, user: User, now: datetime) -> Customer:
    """Return the user's customer, created at Stripe on the first call."""
    customer = Customer.objects.current().filter(user_id=user.pk).first()
    if customer is not None:
        return customer
    operation = operations.begin(
        user=user,
        kind=BillingOperation.Kind.CREATE_CUSTOMER,
        parameters={"address": user.profile_address},
        now=now,
    )
    # Another request may have created the customer before this operation began.
    customer = Customer.objects.current().filter(user_id=user.pk).first()
    if customer is not None:
        operations.finish(operation=operation, outcome=customer.stripe_customer_id, now=now)
        return customer
    return operations.create_customer(operation=operation, now=now)


def with_customer(*, user: User, now: datetime, act: Callable[[Customer], _Result]) -> _Result:
    """
    Return the result of `act` for the user's customer, or for a new one if the customer is deleted at Stripe.

    Raises:
        DomainError: raised by `act` for a customer that is not deleted.
    """
    customer = ensure_customer(user=user, now=now)
    try:
        return act(customer)
    except BillingRefused:
        if not synchronisation.note_if_deleted(customer=customer, now=now):
            raise
    return act(ensure_customer(user=user, now=now))


def setup_secret(*, user: User, now: datetime) -> str:
    """Return the client secret of a new setup intent, with which the wallet captures a card."""
    return with_customer(
        user=user,
        now=now,
        act=lambda customer: get_billing_client().create_setup_intent(
            customer_id=customer.stripe_customer_id
        ),
    )
