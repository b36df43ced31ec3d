"""A Stripe in memory whose time begins in a past year."""

import secrets
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from payments.stripe import set_billing_client
from tests.fakes.billing import FakeBilling


@pytest.fixture
def stripe(settings: Any) -> Iterator[FakeBilling]:
    settings.STRIPE_SECRET_KEY = f"sk_test_{secrets.token_hex(12)}"
    settings.STRIPE_WEBHOOK_SECRETS = [f"whsec_{secrets.token_hex(12)}"]
    installed = FakeBilling(
        webhook_secrets=settings.STRIPE_WEBHOOK_SECRETS, begins_at=datetime(2025, 1, 1, tzinfo=UTC)
    )
    set_billing_client(installed)
    yield installed
    set_billing_client(None)
