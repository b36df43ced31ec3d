"""Payments in the admin: everything to find by its exact id, little to do."""

import secrets
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from credits.models import ReconciliationRun
from payments.models import (
    BillingOperation,
    Clawback,
    Customer,
    Payout,
    PayoutRate,
    StripeEvent,
    Subscription,
)
from tests.factories import UserFactory, random_address
from tests.fakes.billing import FakeBilling
from tests.payments.payers import Payer
from tests.payments.rows import all_rows
from tests.payments.webhook_events import process_events
from tests.staff import log_in_staff
from users.models import User

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("short_sidebar")]
OWNED = [Customer, Subscription, Payout, Clawback, BillingOperation]
ALL = [*OWNED, StripeEvent, ReconciliationRun, PayoutRate]


@pytest.fixture
def staff(client: Client) -> Client:
    """Return a browser of a superuser who has shown a second factor."""
    log_in_staff(client)
    return client


@pytest.fixture(scope="module")
def first_payer(fake_of_module: FakeBilling) -> Payer:
    """A user with a row in every table of payments; every test begins with these rows."""
    return _live(fake_of_module)


@pytest.fixture
def payer(first_payer: Payer, fake_of_test: FakeBilling) -> Payer:
    return Payer(fake_of_test, User.objects.get(pk=first_payer.user.pk))


def _live(fake: FakeBilling) -> Payer:
    event_count = len(fake.events)
    payer = Payer(fake, UserFactory.create()).with_card()
    payer.upsert(1_000 + secrets.randbelow(9_000))
    process_events(fake.events[event_count:], now=fake.now())
    event_count = len(fake.events)
    fake.refund(payer.payout.stripe_payment_intent_id)
    process_events(fake.events[event_count:], now=fake.now())
    ReconciliationRun.objects.create(kind="stripe", started_at=fake.now(), counts={"findings": 0})
    return payer


def _url(model: Any, page: str, *args: object) -> str:
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_{page}", args=args)


def _search(staff: Client, model: type, term: str) -> list[Any]:
    page = staff.get(_url(model, "changelist"), {"q": term})
    assert page.status_code == 200
    return list(page.context["cl"].result_list)


def _rows(model: type, payer: Payer) -> list[Any]:
    path = "payout__user" if model is Clawback else "user"
    return list(model._default_manager.filter(**{path: payer.user}))  # type: ignore[attr-defined]


def test_rows_are_found_by_the_address_of_the_profile_and_a_part_of_it(
    staff: Client, fake_of_test: FakeBilling, payer: Payer
) -> None:
    _live(fake_of_test)
    address = payer.user.profile_address or ""
    for model in OWNED:
        wanted = {row.pk for row in _rows(model, payer)}
        assert wanted
        for term in (address.lower(), f" {address} ", address[:20], f"anna#{address[2:14]}"):
            assert {row.pk for row in _search(staff, model, term)} == wanted
        assert _search(staff, model, random_address()) == []


FOUND_BY: list[tuple[type, tuple[str, ...]]] = [
    (Customer, ("cus",)),
    (Subscription, ("sub", "si", "cus")),
    (Payout, ("in", "pi", "sub", "cus")),
    (Clawback, ("in", "pi")),
]


def test_rows_are_found_by_an_exact_stripe_id(staff: Client, fake_of_test: FakeBilling, payer: Payer) -> None:
    _live(fake_of_test)
    ids = {
        "cus": payer.customer.stripe_customer_id,
        "sub": payer.subscription.stripe_subscription_id,
        "si": payer.subscription.stripe_item_id,
        "in": payer.payout.stripe_invoice_id,
        "pi": payer.payout.stripe_payment_intent_id,
    }
    for model, nouns in FOUND_BY:
        for noun in nouns:
            assert _search(staff, model, ids[noun]) == _rows(model, payer)
            assert _search(staff, model, ids[noun][:-1]) == []
        assert _search(staff, model, "txn_1") == []


def test_events_are_found_by_their_id_and_by_the_id_of_their_object(staff: Client, payer: Payer) -> None:
    event = StripeEvent.objects.get(type="invoice.paid")
    for term in (event.stripe_event_id, event.object_id, payer.payout.stripe_invoice_id):
        assert _search(staff, StripeEvent, term) == [event]


def test_an_operation_is_found_by_the_key_that_stripe_logs(staff: Client, payer: Payer) -> None:
    for operation in BillingOperation.objects.all():
        assert _search(staff, BillingOperation, str(operation.pk)) == [operation]
    assert _search(staff, BillingOperation, secrets.token_hex(4)) == []


def test_a_list_runs_no_more_queries_for_more_rows(
    staff: Client, fake_of_test: FakeBilling, payer: Payer
) -> None:
    for model in ALL:
        _statements(staff, model)  # fills caches that live longer than a request
    for_one = {model: _statements(staff, model) for model in ALL}
    for _ in range(3):
        _live(fake_of_test)
    assert {model: _statements(staff, model) for model in ALL} == for_one
    assert all(model._default_manager.count() >= 4 for model in ALL)


def _statements(staff: Client, model: type) -> int:
    with CaptureQueriesContext(connection) as captured:
        assert staff.get(_url(model, "changelist")).status_code == 200
    return len(captured)


@pytest.mark.parametrize("model", ALL)
def test_rows_are_shown_and_never_changed_or_deleted(staff: Client, payer: Payer, model: type) -> None:
    row = model._default_manager.order_by("pk").first()  # type: ignore[attr-defined]
    before = all_rows(), list(PayoutRate.objects.values())
    shown = staff.get(_url(model, "change", row.pk))
    assert shown.status_code == 200
    assert b'name="_save"' not in shown.content
    assert staff.post(_url(model, "change", row.pk), {"credits": 1}).status_code == 403
    assert staff.post(_url(model, "delete", row.pk), {"post": "yes"}).status_code == 403
    if model is not PayoutRate:
        assert staff.post(_url(model, "add"), {}).status_code == 403
    assert (all_rows(), list(PayoutRate.objects.values())) == before
