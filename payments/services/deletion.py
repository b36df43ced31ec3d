"""Erases personal data of payments when an account is deleted, here and at Stripe; ids and amounts stay here."""

from datetime import datetime

from credits.models import HoldStatus
from gateway.common import db
from payments.errors import BillingInProgress
from payments.models import BillingOperation, Customer, Purchase, Refund, Subscription
from payments.services import purchases, subscriptions, synchronisation, top_ups
from payments.stripe import get_billing_client
from users.models import User

# Event bodies contain cards, e-mail addresses and places. Only events after the customer's creation can refer to it.
_EMPTY_BODIES = """
UPDATE payments_stripeevent SET raw_body = ''
WHERE received_at >= %(since)s AND position(convert_to(%(customer)s, 'UTF8') IN raw_body) > 0
RETURNING id
"""


def leave_stripe(user: User, now: datetime) -> None:
    """
    Cancel the user's subscriptions at once, end open purchases, and delete the customer at Stripe, if there is one.

    A customer with a subscription to another product stays at Stripe, without the data that this service wrote.

    Raises:
        DomainError: not completed; retry later.
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
            # The customer stays at Stripe for another product, but is not ours any more.
            Customer.objects.filter(pk=customer.pk).update(deleted_at=now)


def reason_to_wait(user: User) -> str:
    """Return in words what is left of the user at Stripe, or may still be sent there; empty if nothing."""
    if _is_pending(user):
        return "a change at Stripe is in progress"
    return "a customer is left at Stripe" if Customer.objects.current().filter(user=user).exists() else ""


def erase(user: User) -> None:
    """Keep ids and amounts of payments; remove the address and Stripe's data about the payer."""
    BillingOperation.objects.filter(user=user).update(parameters={})
    # The text that a user accepted for automatic top-up stays, as proof of the consent.
    Purchase.objects.filter(user=user).update(idempotency_key="")
    for customer in Customer.objects.filter(user=user):
        db.all_rows(_EMPTY_BODIES, {"since": customer.created_at, "customer": customer.stripe_customer_id})


def _is_pending(user: User) -> bool:
    """Return whether a request to Stripe is not answered, or an undone purchase still holds credits."""
    operations = BillingOperation.objects.filter(user=user, status=BillingOperation.Status.PENDING)
    undone = Refund.objects.filter(payout__user=user, hold__status=HoldStatus.HELD)
    return operations.exists() or undone.exists()
