"""The version of Stripe's API is pinned by us, not by the installed package."""

import secrets

import pytest
import stripe
from stripe._api_version import _ApiVersion

from payments.stripe import get_billing_client, lookups, set_billing_client
from stripe_double import account
from tests.payments.stripe_accounts import DoubleAccount


def test_the_api_version_is_that_of_the_installed_package_and_of_the_double() -> None:
    assert lookups.API_VERSION == stripe.api_version == account.API_VERSION


def test_another_package_version_leaves_the_requests_unchanged(
    double: DoubleAccount, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_ApiVersion, "CURRENT", "2026-08-26.dahlia")
    set_billing_client(None)

    made = get_billing_client().create_customer(
        profile_address="0x" + secrets.token_hex(20), user_id="7", key=secrets.token_hex(16)
    )

    monkeypatch.undo()
    assert double.v1.customers.retrieve(made).id == made
