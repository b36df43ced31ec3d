"""What beat has done about Stripe by night: compared, told, and never twice at once."""

import logging
from typing import Any

import pytest
from celery import current_app

from credits.models import ReconciliationRun
from payments.errors import BillingUnavailable
from payments.models import StripeEvent
from payments.services import events
from payments.tasks import StripeDiffers, process_due_events, process_event, reconcile_with_stripe
from tests.fakes.billing import FakeBilling
from tests.payments.mail import deliver, store
from tests.payments.meddling import meddling, once
from tests.payments.people import Payer
from tests.threads import at_once
from users.models import User

pytestmark = pytest.mark.django_db


@pytest.fixture
def payer(fake: FakeBilling, user: User, amount: int) -> Payer:
    """A user who paid yesterday; nothing of it has been told yet."""
    fake.pass_time(-86_400)
    payer = Payer(fake, user).with_card()
    payer.upsert(amount)
    return payer


def test_without_a_difference_the_night_is_quiet(
    payer: Payer, fake: FakeBilling, caplog: pytest.LogCaptureFixture
) -> None:
    deliver(fake.events, now=fake.now())
    caplog.clear()
    reconcile_with_stripe()
    assert ReconciliationRun.objects.get().findings == []
    assert not [line for line in caplog.records if line.levelno >= logging.WARNING]


def test_each_difference_is_an_error_and_the_task_fails(
    payer: Payer, fake: FakeBilling, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(StripeDiffers, match="1 differences"):
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


def test_a_message_about_an_event_that_is_not_there_is_passed_over(fake: FakeBilling) -> None:
    with meddling() as client:
        process_event(event_id=0)
    assert not client.asked
    assert not StripeEvent.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_two_sweeps_of_the_inbox_at_once_are_one(payer: Payer, fake: FakeBilling) -> None:
    rows = [store(body, now=fake.now()) for body in fake.events]
    with meddling() as client:
        other: list[object] = []
        client.before["retrieve_subscription"] = once(
            lambda: other.extend(at_once([lambda: events.process_due(now=fake.now())]))
        )
        process_due_events()
    assert other == [0]
    assert StripeEvent.objects.filter(status="processed").count() == len(rows)
    assert payer.balance == payer.payout.credits
