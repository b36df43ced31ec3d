"""The tasks that beat runs for payments."""

import logging
from typing import Any

import pytest
from celery import current_app

from credits.models import ReconciliationRun
from credits.services.reconciliation import BooksDiffer
from payments.errors import BillingUnavailable
from payments.models import StripeEvent
from payments.services import events
from payments.tasks import process_due_events, process_event, reconcile_with_stripe
from tests.fakes.billing import FakeBilling
from tests.payments.faults import fault_injection, once
from tests.payments.payers import Payer
from tests.payments.webhook_events import process_events, receive_event
from tests.threads import at_once
from users.models import User

pytestmark = pytest.mark.django_db


@pytest.fixture
def payer(fake: FakeBilling, user: User, amount: int) -> Payer:
    """A user who paid yesterday; no event of it is processed yet."""
    fake.pass_time(-86_400)
    payer = Payer(fake, user).with_card()
    payer.upsert(amount)
    return payer


def test_the_reconciliation_task_succeeds_without_a_difference(
    payer: Payer, fake: FakeBilling, caplog: pytest.LogCaptureFixture
) -> None:
    process_events(fake.events, now=fake.now())
    caplog.clear()
    reconcile_with_stripe()
    assert ReconciliationRun.objects.get().findings == []
    assert not [line for line in caplog.records if line.levelno >= logging.WARNING]


def test_each_difference_is_an_error_and_the_task_fails(
    payer: Payer, fake: FakeBilling, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(BooksDiffer, match="1 differences"):
        reconcile_with_stripe()
    (error,) = [line.getMessage() for line in caplog.records if line.levelname == "ERROR"]
    (invoice,) = fake.paid_invoices_since(since=fake.now())
    assert error.startswith(f"reconciliation: payout-missing: invoice={invoice.invoice_id} customer=cus_")
    assert current_app.tasks["payments.reconcile"].apply().state == "FAILURE"


def test_a_service_without_payments_has_no_runs(payer: Payer, settings: Any) -> None:
    settings.STRIPE_SECRET_KEY = ""
    with pytest.raises(BillingUnavailable):
        reconcile_with_stripe()
    assert not ReconciliationRun.objects.exists()


def test_a_message_about_an_unknown_event_is_ignored(fake: FakeBilling) -> None:
    with fault_injection() as client:
        process_event(event_id=0)
    assert not client.calls
    assert not StripeEvent.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_two_concurrent_sweeps_of_the_inbox_run_once(payer: Payer, fake: FakeBilling) -> None:
    rows = [receive_event(body, now=fake.now()) for body in fake.events]
    with fault_injection() as client:
        other: list[object] = []
        client.before["retrieve_subscription"] = once(
            lambda: other.extend(at_once([lambda: events.process_due(now=fake.now())]))
        )
        process_due_events()
    assert other == [0]
    assert StripeEvent.objects.filter(status="processed").count() == len(rows)
    assert payer.balance == payer.payout.credits
