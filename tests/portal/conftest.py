"""The wallet of a profile on a chain in memory, as sign-in is tested with it."""

import secrets
from collections.abc import Iterator
from typing import Any

import pytest

from payments.stripe import set_billing_client
from tests.fakes.billing import FakeBilling
from tests.fakes.profiles import Profile
from tests.users.auth_client import signed_in
from tests.users.conftest import chain, client, profile, trusted, wallet
from users.models import User

__all__ = ["chain", "client", "profile", "trusted", "wallet"]


@pytest.fixture
def access(profile: Profile) -> str:
    """An access token of the profile's user."""
    return signed_in(profile).access


@pytest.fixture
def user(access: str, profile: Profile) -> User:
    """The signed-in user."""
    return User.objects.get(profile_address=profile.profile_address)


@pytest.fixture
def stripe(settings: Any) -> Iterator[FakeBilling]:
    """Stripe in memory, where payments are set up."""
    settings.STRIPE_SECRET_KEY = f"sk_test_{secrets.token_hex(8)}"
    settings.STRIPE_WEBHOOK_SECRETS = [f"whsec_{secrets.token_hex(8)}"]
    fake = FakeBilling(webhook_secrets=settings.STRIPE_WEBHOOK_SECRETS)
    set_billing_client(fake)
    yield fake
    set_billing_client(None)
