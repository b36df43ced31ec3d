"""The seam to Stripe: the few questions and orders that the service has."""

from collections.abc import Iterator
from datetime import datetime
from functools import cache
from typing import Protocol

from django.conf import settings

from payments.stripe.sdk import StripeBillingClient
from payments.stripe.states import CustomerState, InvoiceState, MoneyBack, ReceivedEvent, SubscriptionState


class BillingClient(Protocol):
    """
    Stripe, as far as the service knows it.

    Orders take an idempotency key: the same key and arguments give the same answer.
    Every method raises `BillingUnavailable` when Stripe is away, slow, busy or at
    fault. A repeat with the same key is always safe.
    """

    def create_customer(self, *, profile_address: str, user_id: str, key: str) -> str:
        """Create a customer and return its id."""
        ...

    def create_setup_intent(self, *, customer_id: str) -> str:
        """Create a setup intent for off-session use and return its client secret."""
        ...

    def has_payment_method(self, *, customer_id: str) -> bool:
        """Return whether the customer has something to pay with, after making the newest card the default."""
        ...

    def create_subscription(
        self, *, customer_id: str, amount_minor: int, currency: str, cancels_at_period_end: bool, key: str
    ) -> SubscriptionState:
        """Create a monthly subscription. A declined or unconfirmed first payment leaves it `incomplete`."""
        ...

    def update_subscription(
        self,
        *,
        subscription_id: str,
        item_id: str,
        amount_minor: int | None,
        currency: str,
        cancels_at_period_end: bool,
        key: str,
    ) -> SubscriptionState:
        """Change the amount from the next period on (None keeps it) and whether it ends with this one."""
        ...

    def cancel_subscription(self, *, subscription_id: str, key: str) -> SubscriptionState:
        """End the subscription at once, without refund or final invoice. Cancelling twice gives the same answer."""
        ...

    def retrieve_subscription(self, *, subscription_id: str) -> SubscriptionState:
        """Read a subscription."""
        ...

    def list_subscriptions(self, *, customer_id: str) -> list[SubscriptionState]:
        """Read all subscriptions of a customer, ended ones too, newest first."""
        ...

    def pay_open_invoice(self, *, invoice_id: str) -> None:
        """Try to collect an invoice where it is open; a decline shows in the state of its subscription."""
        ...

    def use_newest_card(self, *, customer_id: str) -> None:
        """Make the card that was captured last the default of the customer and of the living subscriptions."""
        ...

    def payment_method_of_setup(self, *, setup_intent_id: str) -> tuple[str, str]:
        """Return (customer id, payment method id) of a succeeded setup intent."""
        ...

    def retrieve_invoice(self, *, invoice_id: str) -> InvoiceState:
        """Read an invoice."""
        ...

    def paid_invoices_since(self, *, since: datetime) -> Iterator[InvoiceState]:
        """Read every paid invoice created since then, page by page."""
        ...

    def customers(self) -> Iterator[CustomerState]:
        """Read every customer of the account, page by page, also those of others; deleted ones are none."""
        ...

    def living_subscriptions(self) -> Iterator[SubscriptionState]:
        """Read every subscription of the account that has not ended, page by page, also those of others."""
        ...

    def payments_gone_back_since(self, *, since: datetime) -> Iterator[str]:
        """Read the payment intents of every refund and dispute begun since then, page by page; some more than once."""
        ...

    def money_back(self, *, payment_intent_id: str) -> MoneyBack:
        """Read all that went back of one payment."""
        ...

    def payment_intent_of(self, *, object_id: str) -> str:
        """Return the payment intent of a charge, refund or dispute."""
        ...

    def undelivered_events(
        self, *, since: datetime, types: tuple[str, ...]
    ) -> Iterator[tuple[ReceivedEvent, bytes]]:
        """Read events that no webhook endpoint has taken, oldest first, each with a body to store."""
        ...

    def read_webhook(self, *, body: bytes, signature: str) -> ReceivedEvent:
        """
        Check a webhook's signature (two secrets during rotation), age and mode.

        Raises:
            WebhookRefused: it is not what Stripe sent to us just now.
        """
        ...


_installed: BillingClient | None = None


@cache
def _stripe_client() -> StripeBillingClient:
    return StripeBillingClient(
        secret_key=settings.STRIPE_SECRET_KEY,
        webhook_secrets=settings.STRIPE_WEBHOOK_SECRETS,
        api_base=settings.STRIPE_API_BASE,
        timeout_seconds=settings.STRIPE_TIMEOUT_SECONDS,
        product_id=settings.STRIPE_PRODUCT_ID,
    )


def set_billing_client(client: BillingClient | None) -> None:
    """Install another client for this process, or with None the one of the settings, made anew."""
    global _installed  # noqa: PLW0603
    _installed = client
    _stripe_client.cache_clear()


def get_billing_client() -> BillingClient:
    """Return the process's client: the installed one, else one over `settings.STRIPE_*`, made once."""
    return _stripe_client() if _installed is None else _installed
