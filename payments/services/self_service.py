"""What payers do alone: Stripe's own pages, their invoices, and where receipts go."""

from datetime import datetime

from payments.models import Customer
from payments.services.customers import with_customer
from payments.stripe import get_billing_client
from payments.stripe.client import InvoicePage
from users.models import User


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


def invoices(*, user: User, limit: int, after: str) -> InvoicePage:
    """Return the user's invoices, newest first, that are older than the one named; none without a customer."""
    customer = Customer.objects.current().filter(user_id=user.pk).first()
    if customer is None:
        return InvoicePage(invoices=(), has_more=False)
    return get_billing_client().invoices(customer_id=customer.stripe_customer_id, limit=limit, after=after)


def receipt_email(*, user: User) -> str:
    """Return where Stripe sends the user's receipts; empty for nowhere. The address is kept at Stripe alone."""
    customer = Customer.objects.current().filter(user_id=user.pk).first()
    if customer is None:
        return ""
    return get_billing_client().receipt_email(customer_id=customer.stripe_customer_id)


def set_receipt_email(*, user: User, email: str, now: datetime) -> None:
    """Have the user's receipts sent to this address, or with an empty one have Stripe forget it."""

    def change(customer: Customer) -> None:
        get_billing_client().set_receipt_email(customer_id=customer.stripe_customer_id, email=email)

    with_customer(user=user, now=now, act=change)
