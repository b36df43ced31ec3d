"""Customers: one per user, also when two requests ask at once."""

from datetime import datetime

from payments.models import BillingOperation, Customer
from payments.services import operations
from payments.stripe import get_billing_client
from users.models import User


def ensure_customer(*, user: User, now: datetime) -> Customer:
    """Return the user's customer, created at Stripe on the first call."""
    customer = Customer.objects.filter(user_id=user.pk).first()
    if customer is not None:
        return customer
    operation = operations.begin(
        user=user,
        kind=BillingOperation.Kind.CREATE_CUSTOMER,
        parameters={"address": user.profile_address},
        now=now,
    )
    # A faster request may have created the customer before this operation began.
    customer = Customer.objects.filter(user_id=user.pk).first()
    if customer is not None:
        operations.finish(operation=operation, outcome=customer.stripe_customer_id, now=now)
        return customer
    return operations.create_customer(operation=operation, now=now)


def setup_secret(*, user: User, now: datetime) -> str:
    """Return the client secret of a new setup intent, with which the wallet captures a card."""
    customer = ensure_customer(user=user, now=now)
    return get_billing_client().create_setup_intent(customer_id=customer.stripe_customer_id)
