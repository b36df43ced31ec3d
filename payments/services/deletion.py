"""What becomes of payments when a person deletes the account: nothing stays at Stripe, and only figures here."""

from datetime import datetime

from gateway.common import db
from payments.errors import BillingInProgress
from payments.models import BillingOperation, Customer, Subscription
from payments.services import subscriptions, synchronisation
from payments.stripe import get_billing_client
from users.models import User

# Bodies of events name cards, mail addresses and places. Only events since there was a customer can be about it.
_EMPTY_BODIES = """
UPDATE payments_stripeevent SET raw_body = ''
WHERE received_at >= %(since)s AND position(convert_to(%(customer)s, 'UTF8') IN raw_body) > 0
RETURNING id
"""


def leave_stripe(user: User, now: datetime) -> None:
    """
    Cancel the user's subscription at once and delete the customer at Stripe; where there is none, do nothing.

    Raises:
        DomainError: try it again later.
    """
    if _is_pending(user):
        raise BillingInProgress("A change at Stripe is under way.", retry_after=60)
    if Subscription.objects.live().filter(user=user).exists():
        subscriptions.cancel(user=user, immediately=True, now=now)
    for customer in Customer.objects.current().filter(user=user):
        get_billing_client().delete_customer(customer_id=customer.stripe_customer_id)
        synchronisation.note_if_deleted(customer=customer, now=now)


def what_is_left(user: User) -> str:
    """Return what Stripe still has of the user, or is about to get; empty for nothing."""
    if _is_pending(user):
        return "a change at Stripe is under way"
    return "a customer is left at Stripe" if Customer.objects.current().filter(user=user).exists() else ""


def erase(user: User) -> None:
    """Keep ids and figures of what was paid, without the address and without what Stripe told of the payer."""
    BillingOperation.objects.filter(user=user).update(parameters={})
    for customer in Customer.objects.filter(user=user):
        db.all_rows(_EMPTY_BODIES, {"since": customer.created_at, "customer": customer.stripe_customer_id})


def _is_pending(user: User) -> bool:
    return BillingOperation.objects.filter(user=user, status=BillingOperation.Status.PENDING).exists()
