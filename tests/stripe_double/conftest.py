"""One double for the package, without any resource at the start of each test."""

import secrets
from collections.abc import Callable, Iterator

import pytest

from devstack.services.stack import Services
from devstack.services.stripe_double import StripeDouble
from stripe_double.client import ControlClient
from tests.stripe_double.accounts import DoubleAccount
from tests.stripe_double.webhook_receiver import WebhookReceiver, receive_webhooks


@pytest.fixture(scope="package")
def webhook_server() -> Iterator[WebhookReceiver]:
    """Yield an endpoint for webhooks."""
    with receive_webhooks(f"whsec_{secrets.token_hex(24)}") as webhooks:
        yield webhooks


@pytest.fixture
def double(services: Services) -> StripeDouble:
    """Return the double without any resource, sending no webhooks."""
    services.stripe.controls.set_webhook_endpoint(None, "")
    services.stripe.controls.reset()
    return services.stripe


@pytest.fixture
def controls(double: StripeDouble) -> ControlClient:
    """Return the client of the double's control API."""
    return double.controls


@pytest.fixture
def webhooks(double: StripeDouble, webhook_server: WebhookReceiver) -> WebhookReceiver:
    """Return an endpoint that the double sends every event to."""
    webhook_server.clear()
    double.controls.set_webhook_endpoint(webhook_server.url, webhook_server.secret)
    return webhook_server


@pytest.fixture
def account(double: StripeDouble) -> DoubleAccount:
    """Return the double's account."""
    return DoubleAccount(double)


@pytest.fixture
def amount() -> int:
    """Return an amount that no test can know beforehand."""
    return 500 + secrets.randbelow(20_000)


@pytest.fixture
def key() -> Callable[[], str]:
    """Return a maker of idempotency keys."""
    return lambda: secrets.token_hex(16)
