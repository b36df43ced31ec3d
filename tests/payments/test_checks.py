"""The findings of `manage.py check` before the first customer pays."""

import secrets
from dataclasses import replace
from typing import Any

import pytest
from django.core.checks import WARNING, CheckMessage, run_checks
from pytest_django import Settings

from payments.amounts import MINIMUM_CHARGE
from payments.checks import stripe_settings
from payments.services.snapshots import EVENT_TYPES
from tests.fakes.billing import FakeBilling


@pytest.fixture(autouse=True)
def account(fake: FakeBilling, settings: Settings) -> FakeBilling:
    """A Stripe account whose settings are right."""
    url = f"{settings.PUBLIC_URL}/webhooks/stripe"
    fake.settings = replace(fake.settings, webhook_types={url: frozenset(EVENT_TYPES)})
    return fake


def messages(*, deploy: bool = False) -> list[tuple[str | None, str]]:
    """Return id and text of every message that asks for something."""
    return [(message.id, message.msg) for message in _found(deploy=deploy) if message.level >= WARNING]


def _found(*, deploy: bool) -> list[CheckMessage]:
    found = run_checks(tags=["payments"], include_deployment_checks=deploy)
    return [*found, *(stripe_settings() if deploy else ())]


@pytest.mark.parametrize(
    ("changes", "wanted"),
    [
        ({"webhook_types": {"https://other.example/webhooks/stripe": frozenset("*")}}, "payments.W003"),
        ({"has_portal": False}, "payments.W005"),
        ({"has_unpaid_subscription": True}, "payments.W006"),
        ({"computes_tax": False}, "payments.W007"),
    ],
)
def test_a_setting_of_stripe_that_is_not_as_documented_is_named(
    account: FakeBilling, settings: Settings, changes: dict[str, Any], wanted: str
) -> None:
    settings.STRIPE_AUTOMATIC_TAX = True
    account.settings = replace(account.settings, computes_tax=True)
    assert messages(deploy=True) == []
    account.settings = replace(account.settings, **changes)
    assert [identifier for identifier, _ in messages(deploy=True)] == [wanted]
    assert messages() == []


def test_every_event_that_the_endpoint_does_not_send_is_named(account: FakeBilling) -> None:
    ((url, types),) = account.settings.webhook_types.items()
    for missing in types:
        account.settings = replace(account.settings, webhook_types={url: types - {missing}})
        [(identifier, text)] = messages(deploy=True)
        assert (identifier, missing in text) == ("payments.W004", True)
    account.settings = replace(account.settings, webhook_types={url: frozenset("*")})
    assert messages(deploy=True) == []


def test_the_check_reports_missing_data_and_an_outage_of_stripe(account: FakeBilling) -> None:
    said = _found(deploy=True)
    assert [message.id for message in said] == ["payments.I001"]
    with account.away():
        assert [identifier for identifier, _ in messages(deploy=True)] == ["payments.W002"]


@pytest.fixture(params=["sk", "rk"])
def live(request: pytest.FixtureRequest, settings: Settings) -> str:
    """Set a live key at Stripe itself."""
    settings.STRIPE_API_BASE = "https://api.stripe.com"
    key = f"{request.param}_live_{secrets.token_hex(12)}"
    settings.STRIPE_SECRET_KEY = key
    return key


def test_a_sound_configuration_passes() -> None:
    assert messages(deploy=True) == []


def test_a_live_key_is_sound_at_stripe(live: str) -> None:
    assert messages(deploy=True) == []


def test_a_live_key_is_refused_for_another_stripe_server(live: str, settings: Settings) -> None:
    settings.STRIPE_API_BASE = "http://127.0.0.1:4242"
    [(identifier, text)] = messages()
    assert (identifier, "STRIPE_API_BASE" in text, live in text) == ("payments.E001", True, False)
    settings.STRIPE_API_BASE = "https://api.stripe.com/"
    assert messages() == []


@pytest.mark.parametrize("prefix", ["pk_test_", "pk_live_", "whsec_", "", "SK_LIVE_"])
def test_an_invalid_secret_key_is_refused_without_quoting_it(settings: Settings, prefix: str) -> None:
    settings.STRIPE_SECRET_KEY = prefix + secrets.token_hex(12)
    [(identifier, text)] = messages()
    assert identifier == "payments.E001"
    assert settings.STRIPE_SECRET_KEY not in text


def test_a_key_without_a_webhook_secret_is_refused(settings: Settings) -> None:
    settings.STRIPE_WEBHOOK_SECRETS = []
    [(identifier, text)] = messages()
    assert identifier == "payments.E001"
    assert "STRIPE_WEBHOOK_SECRETS" in text


def test_no_key_at_all_is_a_warning_on_deployment(settings: Settings) -> None:
    settings.STRIPE_SECRET_KEY = ""
    settings.STRIPE_WEBHOOK_SECRETS = []
    assert messages() == []
    assert [identifier for identifier, _ in messages(deploy=True)] == ["payments.W001"]


@pytest.mark.parametrize("currency", ["jpy", "USD", "xxx"])
def test_a_currency_without_a_known_minimum_is_refused(settings: Settings, currency: str) -> None:
    settings.BILLING_CURRENCIES = ["usd", currency]
    [(identifier, text)] = messages()
    assert identifier == "payments.E002"
    assert text.endswith(f": {currency}.")
    settings.BILLING_CURRENCIES = list(MINIMUM_CHARGE)
    assert messages() == []
