"""An empty Stripe account for each test, users who pay, and a check that nothing changes on an error."""

import random
import secrets
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from typing import Any

import pytest
import stripe
from django.conf import settings as settings_of_django
from django.test import override_settings
from pytest_django import DjangoDbBlocker

from devstack.services.stack import Services
from gateway.common.errors import DomainError
from payments.errors import CardDeclined
from payments.models import PayoutRate
from payments.stripe import set_billing_client
from tests.database import rewrite, rows_of_a_module
from tests.factories import UserFactory
from tests.fakes.billing import FakeBilling
from tests.payments.dashboard import Clerk
from tests.payments.payers import Payer
from tests.payments.rows import all_rows
from tests.payments.stripe_accounts import DECLINES, DoubleAccount
from tests.payments.webhook_events import process_all_events
from tests.transactions import assert_none_is_open
from users.models import User


@pytest.fixture(autouse=True)
def _own_settings(settings: Any) -> Iterator[None]:
    """Set payments up with secrets of this test; no Stripe is reachable until a fixture installs one."""
    for name, value in _fresh_settings().items():
        setattr(settings, name, value)
    set_billing_client(None)
    yield
    set_billing_client(None)


def _fresh_settings() -> dict[str, Any]:
    return {
        "STRIPE_SECRET_KEY": f"sk_test_{secrets.token_hex(12)}",
        "STRIPE_WEBHOOK_SECRETS": [f"whsec_{secrets.token_hex(12)}" for _ in range(2)],
        "STRIPE_API_BASE": "http://127.0.0.1:1",
        "STRIPE_PRODUCT_ID": f"credits-{secrets.token_hex(4)}",
    }


@pytest.fixture(autouse=True)
def _no_stripe_request_in_a_transaction(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail every request to Stripe that is sent while a transaction is open."""
    request = stripe.RequestsClient.request

    def checked(*arguments: Any, **options: Any) -> Any:
        assert_none_is_open()
        return request(*arguments, **options)

    monkeypatch.setattr(stripe.RequestsClient, "request", checked)


@pytest.fixture
def double(services: Services, settings: Any, _own_settings: None) -> DoubleAccount:
    """The empty account of the double, reached through Stripe's SDK."""
    world = DoubleAccount(services.stripe)
    world.controls.set_webhook_endpoint(None, "")
    world.controls.reset()
    settings.STRIPE_SECRET_KEY = services.stripe.secret_key
    settings.STRIPE_API_BASE = services.stripe.url
    set_billing_client(None)
    return world


@pytest.fixture
def fake(settings: Any, _own_settings: None) -> FakeBilling:
    """A Stripe in memory."""
    installed = FakeBilling(webhook_secrets=settings.STRIPE_WEBHOOK_SECRETS)
    set_billing_client(installed)
    return installed


@pytest.fixture(scope="module")
def fake_of_module(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[FakeBilling]:
    """
    A Stripe in memory, for a fixture of the module that writes many rows once.

    Every test begins with these rows, and with a copy of this account.
    """
    with django_db_blocker.unblock(), override_settings(**_fresh_settings()), rows_of_a_module():
        set_rates()
        installed = FakeBilling(webhook_secrets=settings_of_django.STRIPE_WEBHOOK_SECRETS)
        set_billing_client(installed)
        yield installed


@pytest.fixture
def fake_of_test(fake_of_module: FakeBilling, db: None, settings: Any, _own_settings: None) -> FakeBilling:
    """A copy of the module's Stripe in memory."""
    installed = fake_of_module.copy(webhook_secrets=settings.STRIPE_WEBHOOK_SECRETS)
    set_billing_client(installed)
    return installed


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the SDK wait only a moment before it repeats a request."""
    monkeypatch.setattr(stripe.HTTPClient, "INITIAL_DELAY", 0.01)
    monkeypatch.setattr(stripe.HTTPClient, "MAX_DELAY", 0.02)


@pytest.fixture
def amount() -> int:
    """Return an amount in minor units that no test can know beforehand."""
    return random.randint(500, 50_000)


@pytest.fixture
def rates(db: None) -> dict[str, int]:
    """What 1.00 of each currency pays out; transactional tests lose the rows that the migration has made."""
    return set_rates()


def set_rates() -> dict[str, int]:
    """Set random rates that have always been."""
    chosen = {currency: random.randint(100, 5_000) for currency in settings_of_django.BILLING_CURRENCIES}
    for currency, rate in chosen.items():
        first = {"currency": currency, "valid_from": datetime(2020, 1, 1, tzinfo=UTC)}
        if not rewrite(PayoutRate.objects.filter(**first), credits_per_major_unit=rate):
            PayoutRate.objects.create(**first, credits_per_major_unit=rate)
    return chosen


@pytest.fixture
def user(rates: dict[str, int]) -> User:
    """Return the owner of a profile."""
    return UserFactory.create()


@pytest.fixture
def payer(double: DoubleAccount, user: User) -> Payer:
    """Return a user who is a customer at the double and has a card."""
    return Payer(double, user).with_card()


@pytest.fixture
def running(double: DoubleAccount, payer: Payer, amount: int) -> Payer:
    """A user whose subscription runs and whose first month is paid out."""
    payer.upsert(amount)
    process_all_events(double)
    return payer


@pytest.fixture
def clerk(double: DoubleAccount) -> Clerk:
    """Return a clerk at the double's dashboard."""
    return Clerk(double)


Refused = Callable[[type[DomainError]], AbstractContextManager["pytest.ExceptionInfo[DomainError]"]]


@pytest.fixture
def refused(double: DoubleAccount) -> Refused:
    """Return a context that expects a refusal, and nothing else to happen: no row, nothing ordered at Stripe."""

    @contextmanager
    def expect(kind: type[DomainError]) -> Iterator["pytest.ExceptionInfo[DomainError]"]:
        before = all_rows()
        with double.frozen_log() as orders, pytest.raises(kind) as refusal:
            yield refusal
        assert type(refusal.value) is kind
        assert orders == []
        assert all_rows() == before

    return expect


@pytest.fixture
def subscriber(fake: FakeBilling, user: User, amount: int) -> Payer:
    """A user with a new subscription; no event of it is processed yet."""
    payer = Payer(fake, user).with_card()
    payer.upsert(amount)
    return payer


@pytest.fixture
def declined(double: DoubleAccount, user: User, amount: int) -> Payer:
    """A user whose first invoice is open."""
    payer = Payer(double, user).with_card(DECLINES)
    with pytest.raises(CardDeclined):
        payer.upsert(amount)
    return payer
