"""Erase payments when an account is deleted: the customer at Stripe is deleted; ids and amounts stay here."""

from datetime import datetime

from gateway.common import db
from payments.errors import BillingInProgress
from payments.models import BillingOperation, Customer, Purchase, Subscription
from payments.services import purchases, subscriptions, synchronisation, top_ups
from payments.stripe import get_billing_client
from users.models import User

# Bodies of events name cards, e-mail addresses and places. Only events after the customer's creation can contain it.
_EMPTY_BODIES = """
UPDATE payments_stripeevent SET raw_body = ''
WHERE received_at >= %(since)s AND position(convert_to(%(customer)s, 'UTF8') IN raw_body) > 0
RETURNING id
"""


def leave_stripe(user: User, now: datetime) -> None:
    """
    Cancel the user's subscription at once, end purchases, and delete the customer at Stripe; without one, do nothing.

    A customer who also has a subscription to another product stays there for that, without our data.

    Raises:
        DomainError: retry later.
    """
    if _is_pending(user):
        raise BillingInProgress("A change at Stripe is in progress.", retry_after=60)
    if Subscription.objects.live().filter(user=user).exists():
        subscriptions.cancel(user=user, immediately=True, now=now)
    top_ups.withdraw(user=user, now=now)
    for purchase in Purchase.objects.filter(user=user, status=Purchase.Status.OPEN):
        purchases.end(purchase, now=now)
    for customer in Customer.objects.current().filter(user=user):
        get_billing_client().delete_customer(customer_id=customer.stripe_customer_id)
        if not synchronisation.note_if_deleted(customer=customer, now=now):
            # Another product bills it; it is no longer a customer of ours.
            Customer.objects.filter(pk=customer.pk).update(deleted_at=now)


def what_is_left(user: User) -> str:
    """Return what Stripe still has, or may still receive, of the user; empty if nothing."""
    if _is_pending(user):
        return "a change at Stripe is in progress"
    return "a customer is left at Stripe" if Customer.objects.current().filter(user=user).exists() else ""


def erase(user: User) -> None:
    """Keep ids and amounts of payments; remove the address and Stripe's data about the payer."""
    BillingOperation.objects.filter(user=user).update(parameters={})
    # The text of a consent stays as its proof.
    Purchase.objects.filter(user=user).update(idempotency_key="")
    for customer in Customer.objects.filter(user=user):
        db.all_rows(_EMPTY_BODIES, {"since": customer.created_at, "customer": customer.stripe_customer_id})


def _is_pending(user: User) -> bool:
    return BillingOperation.objects.filter(user=user, status=BillingOperation.Status.PENDING).exists()
