"""Self-service for payers: Stripe's pages, the card, invoices, and the e-mail address for receipts."""

from collections.abc import Callable
from datetime import datetime
from typing import TypeVar

from payments.errors import BillingRefused
from payments.models import Customer
from payments.services import synchronisation
from payments.services.customers import with_customer
from payments.stripe import get_billing_client
from payments.stripe.client import InvoicePage, SavedCard
from users.models import User

_Result = TypeVar("_Result")


def card_page(*, user: User, return_url: str, now: datetime) -> str:
    """Return the URL of a page at Stripe that captures a card and returns to `return_url`."""

    def create(customer: Customer) -> str:
        return get_billing_client().create_card_page(
            customer_id=customer.stripe_customer_id, return_url=return_url
        )

    return with_customer(user=user, now=now, act=create)


def portal_page(*, user: User, return_url: str, now: datetime) -> str:
    """Return the URL of a session of Stripe's customer portal, which returns to `return_url`."""

    def create(customer: Customer) -> str:
        return get_billing_client().create_portal_page(
            customer_id=customer.stripe_customer_id, return_url=return_url
        )

    return with_customer(user=user, now=now, act=create)


def invoices(*, user: User, limit: int, after: str, now: datetime) -> InvoicePage:
    """Return the user's invoices older than the invoice `after`, newest first; none if the user has no customer."""

    def ask(customer: Customer) -> InvoicePage:
        return get_billing_client().invoices(
            customer_id=customer.stripe_customer_id, limit=limit, after=after
        )

    return _ask(user, ask, InvoicePage(invoices=(), has_more=False), now)


def saved_card(*, user: User, now: datetime) -> SavedCard | None:
    """Return the card that the user's next payment uses, or None. Only Stripe stores it."""

    def ask(customer: Customer) -> SavedCard | None:
        return get_billing_client().saved_card(customer_id=customer.stripe_customer_id)

    return _ask(user, ask, None, now)


def receipt_email(*, user: User, now: datetime) -> str:
    """Return the e-mail address for the user's receipts, empty if there is none. Only Stripe stores it."""

    def ask(customer: Customer) -> str:
        return get_billing_client().receipt_email(customer_id=customer.stripe_customer_id)

    return _ask(user, ask, "", now)


def set_receipt_email(*, user: User, email: str, now: datetime) -> None:
    """Set the e-mail address for the user's receipts at Stripe; an empty one deletes it."""

    def change(customer: Customer) -> None:
        get_billing_client().set_receipt_email(customer_id=customer.stripe_customer_id, email=email)

    with_customer(user=user, now=now, act=change)


def _ask(user: User, ask: Callable[[Customer], _Result], nothing: _Result, now: datetime) -> _Result:
    """Return the result of `ask`, or `nothing` for a user without a customer: a read must not create one."""
    customer = Customer.objects.current().filter(user_id=user.pk).first()
    if customer is None:
        return nothing
    try:
        return ask(customer)
    except BillingRefused:
        if not synchronisation.note_if_deleted(customer=customer, now=now):
            raise
    return nothing
