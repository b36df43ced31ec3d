"""Stripe accounts for the contract tests: the double's, and one at Stripe if a test key is given."""

import json
import secrets
import time
from abc import ABC, abstractmethod
from typing import Any, cast
from urllib.parse import urlsplit

import stripe

from double_process import DoubleProcess
from openapi import OpenApi, response_checks

# The key of a test account at Stripe; with it the contract tests also run against Stripe.
VERIFIED_KEY = "VERIFIED_STRIPE_KEY"
# Another base URL instead of Stripe's, for that key.
VERIFIED_BASE = "VERIFIED_STRIPE_BASE"
HOUR = 3600
DAY = 24 * HOUR
_RETURN_URL = "https://wallet.example/back"


class CheckingClient(stripe.RequestsClient):
    """The SDK's HTTP client, which also checks every response against Stripe's OpenAPI description."""

    def __init__(self, openapi: OpenApi) -> None:
        super().__init__(timeout=120)
        self._openapi = openapi

    def request(self, method: str, url: str, *args: Any, **options: Any) -> Any:
        """Send the request; raise `SchemaMismatch` where the response does not match."""
        content, status, headers = super().request(method, url, *args, **options)
        body = json.loads(content)
        self._openapi.check(method.upper(), urlsplit(url).path, status, body)
        return content, status, headers


class StripeAccount(ABC):
    """One Stripe account, and the time in it."""

    client: stripe.StripeClient

    @property
    def v1(self) -> stripe.V1Services:
        """The services of API version 1."""
        return self.client.v1

    @abstractmethod
    def create_customer(self, **params: Any) -> stripe.Customer:
        """Create a customer whose time can be advanced."""

    @abstractmethod
    def pass_time(self, customer: stripe.Customer, seconds: int) -> None:
        """Advance the customer's time and do everything due."""

    @abstractmethod
    def now(self, customer: stripe.Customer) -> int:
        """Return the customer's current second."""

    def create_product(self) -> stripe.Product:
        """Create a product with a name of its own."""
        return self.v1.products.create({"name": f"Relay credits {secrets.token_hex(4)}"})

    def set_up_card(self, customer: stripe.Customer, card: str) -> stripe.SetupIntent:
        """Confirm a new setup intent with a card, as a browser would."""
        intent = self.v1.setup_intents.create(
            {"customer": customer.id, "usage": "off_session", "automatic_payment_methods": {"enabled": True}}
        )
        return self.v1.setup_intents.confirm(intent.id, {"payment_method": card, "return_url": _RETURN_URL})

    def create_paying_customer(self, card: str = "pm_card_visa") -> stripe.Customer:
        """Create a customer whose default is this card."""
        customer = self.create_customer()
        method = self.v1.payment_methods.attach(card, {"customer": customer.id})
        return self.v1.customers.update(
            customer.id, {"invoice_settings": {"default_payment_method": method.id}}
        )

    def subscribe(
        self, customer: stripe.Customer, amount: int, currency: str = "usd", **params: Any
    ) -> stripe.Subscription:
        """Create a monthly subscription over this amount."""
        price = {
            "currency": currency,
            "product": self.create_product().id,
            "unit_amount": amount,
            "recurring": {"interval": "month"},
        }
        defaults = {
            "customer": customer.id,
            "items": [{"price_data": price}],
            "billing_mode": {"type": "flexible"},
            "expand": ["latest_invoice.payments", "latest_invoice.confirmation_secret"],
        }
        return self.v1.subscriptions.create(cast("Any", {**defaults, **params}))

    def invoices(self, subscription: stripe.Subscription) -> list[stripe.Invoice]:
        """Return the invoices of a subscription, oldest first."""
        invoices = self.v1.invoices.list({"subscription": subscription.id, "limit": 100})
        return invoices.data[::-1]

    def payment_intent_of(self, subscription: stripe.Subscription) -> str:
        """Return the payment intent of the latest invoice."""
        expand: Any = {"expand": ["latest_invoice.payments"]}
        invoice = latest_invoice(self.v1.subscriptions.retrieve(subscription.id, expand))
        assert invoice.payments is not None
        return str(invoice.payments.data[0].payment.payment_intent)

    def event_types(self, prefix: str) -> list[str]:
        """Return the types of the last events with this prefix, oldest first."""
        events = self.v1.events.list({"limit": 100}).data
        return [event.type for event in reversed(events) if event.type.startswith(prefix)]


def latest_invoice(subscription: stripe.Subscription) -> stripe.Invoice:
    """Return the expanded latest invoice."""
    assert isinstance(subscription.latest_invoice, stripe.Invoice)
    return subscription.latest_invoice


class DoubleAccount(StripeAccount):
    """The double."""

    def __init__(self, double: DoubleProcess) -> None:
        self.double = double
        http = CheckingClient(response_checks(strict=True))
        self.client = stripe.StripeClient(
            double.secret_key, base_addresses={"api": double.url}, http_client=http
        )

    def create_customer(self, **params: Any) -> stripe.Customer:
        """Create a customer; the double has one time for all."""
        return self.v1.customers.create(cast("Any", params))

    def pass_time(self, customer: stripe.Customer, seconds: int) -> None:
        """Advance the double."""
        self.double.controls.advance(seconds)

    def now(self, customer: stripe.Customer) -> int:
        """Ask the double."""
        return self.double.controls.now


class RealAccount(StripeAccount):
    """Stripe itself, in test mode; every customer has a test clock of its own."""

    def __init__(self, secret_key: str, api_base: str | None = None) -> None:
        http = CheckingClient(response_checks(strict=False))
        base: Any = {"api": api_base} if api_base else {}
        self.client = stripe.StripeClient(secret_key, base_addresses=base, http_client=http)

    def create_customer(self, **params: Any) -> stripe.Customer:
        """Create a customer on a new test clock."""
        clock = self.v1.test_helpers.test_clocks.create({"frozen_time": int(time.time())})
        return self.v1.customers.create(cast("Any", {**params, "test_clock": clock.id}))

    def pass_time(self, customer: stripe.Customer, seconds: int) -> None:
        """Advance the customer's clock and wait until Stripe has caught up."""
        clock = self._clock(customer)
        pause = 0.05
        self.v1.test_helpers.test_clocks.advance(clock.id, {"frozen_time": clock.frozen_time + seconds})
        deadline = time.monotonic() + 180
        while self._clock(customer).status != "ready":
            if time.monotonic() > deadline:
                raise TimeoutError("Stripe's test clock did not get ready.")
            time.sleep(pause)
            pause = min(2, 2 * pause)

    def now(self, customer: stripe.Customer) -> int:
        """Ask the customer's clock."""
        return int(self._clock(customer).frozen_time)

    def _clock(self, customer: stripe.Customer) -> Any:
        return self.v1.test_helpers.test_clocks.retrieve(str(customer.test_clock))
