"""The accounts of the contract tests: the double's, and one at Stripe if a test key is given."""

import os

import pytest
import stripe

from accounts import VERIFIED_BASE, VERIFIED_KEY, DoubleAccount, RealAccount, StripeAccount

_BOTH = ["double", "stripe"] if VERIFIED_KEY in os.environ else ["double"]
# `verify_stripe` names one.
_ACCOUNTS = os.environ.get("STRIPE_CONTRACT_ACCOUNTS", " ".join(_BOTH)).split()


@pytest.fixture(params=_ACCOUNTS)
def account(request: pytest.FixtureRequest) -> StripeAccount:
    """Return each account of the contract tests."""
    if request.param == "stripe":
        return RealAccount(os.environ[VERIFIED_KEY], os.environ.get(VERIFIED_BASE))
    return DoubleAccount(request.getfixturevalue("double"))


@pytest.fixture
def stripe_client(account: StripeAccount) -> stripe.StripeClient:
    """Return the SDK's client of the account."""
    return account.client
