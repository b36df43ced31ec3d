"""Both Stripes: what holds over the wire holds for the fake."""

import secrets
from collections.abc import Callable

import pytest
from django.conf import settings

from payments.stripe import get_billing_client
from tests.fakes.billing import FakeBilling
from tests.payments.worlds import DoubleWorld, Setting


@pytest.fixture(params=["fake", "double"])
def here(request: pytest.FixtureRequest) -> Setting:
    """Return one of both, with its client."""
    if request.param == "fake":
        fake = FakeBilling(webhook_secrets=settings.STRIPE_WEBHOOK_SECRETS)
        return Setting(fake, fake)
    double: DoubleWorld = request.getfixturevalue("double")
    return Setting(double, get_billing_client())


@pytest.fixture
def key() -> Callable[[], str]:
    """Return a maker of idempotency keys."""
    return lambda: secrets.token_hex(16)


@pytest.fixture
def customer_id(here: Setting, key: Callable[[], str]) -> str:
    """Return a customer without a card."""
    return here.client.create_customer(profile_address="0x" + secrets.token_hex(20), user_id="7", key=key())
