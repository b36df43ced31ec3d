"""What payers do alone: Stripe's own pages, their invoices, and where receipts go."""

from collections.abc import Callable
from datetime import datetime
from typing import TypeVar

from payments.errors import BillingRefused
from payments.models import Customer
from payments.services import synchronisation
from payments.services.customers import with_customer
from payments.stripe import get_billing_client
from payments.stripe.client import InvoicePage
from users.models import User

_Result = TypeVar("_Result")


def card_page(*, user: User, return_url: str, now: datetime) -> str:
    """Return the address of a page of Stripe's that captures a card and leads back to `return_url`."""

    def create(customer: Customer) -> str:
        return get_billing_client().create_card_page(
            customer_id=customer.stripe_customer_id, return_url=return_url
        )

    return with_customer(user=user, now=now, act=create)


def portal_page(*, user: User, return_url: str, now: datetime) -> str:
    """Return the address of the user's visit to Stripe's customer portal, which leads back to `return_url`."""

    def create(customer: Customer) -> str:
        return get_billing_client().create_portal_page(
            customer_id=customer.stripe_customer_id, return_url=return_url
        )

    return with_customer(user=user, now=now, act=create)


def invoices(*, user: User, limit: int, after: str, now: datetime) -> InvoicePage:
    """Return the user's invoices, newest first, that are older than the one named; none without a customer."""

    def ask(customer: Customer) -> InvoicePage:
        return get_billing_client().invoices(
            customer_id=customer.stripe_customer_id, limit=limit, after=after
        )

    return _ask(user, ask, InvoicePage(invoices=(), has_more=False), now)


def receipt_email(*, user: User, now: datetime) -> str:
    """Return where Stripe sends the user's receipts; empty for nowhere. The address is kept at Stripe alone."""

    def ask(customer: Customer) -> str:
        return get_billing_client().receipt_email(customer_id=customer.stripe_customer_id)

    return _ask(user, ask, "", now)


def set_receipt_email(*, user: User, email: str, now: datetime) -> None:
    """Have the user's receipts sent to this address, or with an empty one have Stripe forget it."""

    def change(customer: Customer) -> None:
        get_billing_client().set_receipt_email(customer_id=customer.stripe_customer_id, email=email)

    with_customer(user=user, now=now, act=change)


def _ask(user: User, ask: Callable[[Customer], _Result], nothing: _Result, now: datetime) -> _Result:
    """Return what `ask` answers; to look makes no customer, so `nothing` where there is none any more."""
    customer = Customer.objects.current().filter(user_id=user.pk).first()
    if customer is None:
        return nothing
    try:
        return ask(customer)
    except BillingRefused:
        if not synchronisation.note_if_deleted(customer=customer, now=now):
            raise
    return nothing
