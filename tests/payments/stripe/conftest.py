"""The fake and the double: both must pass the same suite."""

import secrets
from collections.abc import Callable
from typing import Any

import pytest
from django.conf import settings

from devstack.services.stack import Services
from payments.stripe import get_billing_client
from payments.stripe.client import SubscriptionState
from tests.fakes.billing import FakeBilling
from tests.payments.stripe_accounts import VISA, DoubleAccount, SeamCase

Key = Callable[[], str]
Begin = Callable[..., SubscriptionState]


@pytest.fixture(params=["fake", "double"])
def seam(request: pytest.FixtureRequest, services: Services) -> SeamCase:
    """
    Return the account of one of both, with its client.

    `services` is named here to start before the settings of a test, whose end would undo the address of Redis.
    """
    if request.param == "fake":
        fake = FakeBilling(webhook_secrets=settings.STRIPE_WEBHOOK_SECRETS)
        return SeamCase(fake, fake)
    double: DoubleAccount = request.getfixturevalue("double")
    return SeamCase(double, get_billing_client())


@pytest.fixture
def key() -> Key:
    """Return a function that makes idempotency keys."""
    return lambda: secrets.token_hex(16)


@pytest.fixture
def customer_id(seam: SeamCase, key: Key) -> str:
    """Return a customer without a card."""
    return seam.client.create_customer(profile_address="0x" + secrets.token_hex(20), user_id="7", key=key())


@pytest.fixture
def begin(seam: SeamCase, customer_id: str, key: Key, amount: int) -> Begin:
    """Return a function that captures a card and creates a subscription with it."""

    def run(card: str = VISA, **changes: Any) -> SubscriptionState:
        seam.account.capture(customer_id, card)
        assert seam.client.has_payment_method(customer_id=customer_id)
        wanted = {
            "customer_id": customer_id,
            "amount_minor": amount,
            "currency": "usd",
            "cancels_at_period_end": False,
            "key": key(),
        }
        return seam.client.create_subscription(**{**wanted, **changes})

    return run
