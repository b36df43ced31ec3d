"""Support lets a failed event be processed again."""

from datetime import timedelta

import pytest
from celery import current_app
from django.contrib.admin.models import LogEntry
from django.test import Client
from django.urls import reverse
from pytest_django import DjangoCaptureOnCommitCallbacks

from credits.models import CreditEntry
from gateway.staff.audit import sentence_of
from payments.errors import BillingUnavailable
from payments.models import Payout, PayoutRate, StripeEvent
from payments.services import events
from tests.database import erase
from tests.fakes.billing import FakeBilling
from tests.payments.payers import Payer
from tests.payments.rows import all_rows
from tests.payments.webhook_events import receive_event
from tests.staff import confirm, log_in_staff
from users.models import User

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("short_sidebar")]
LIST = "admin:payments_stripeevent_changelist"
Enqueued = list[tuple[str, object]]


@pytest.fixture
def enqueued(monkeypatch: pytest.MonkeyPatch) -> Enqueued:
    """The enqueued tasks."""
    tasks_sent: Enqueued = []
    monkeypatch.setattr(
        current_app, "send_task", lambda name, *, kwargs, **_: tasks_sent.append((name, kwargs["event_id"]))
    )
    return tasks_sent


@pytest.fixture
def failed(fake: FakeBilling, user: User, amount: int) -> StripeEvent:
    """An event that found Stripe away so often that the next try is hours ahead."""
    Payer(fake, user).with_card().upsert(amount)
    row = receive_event(next(body for body in fake.events if b"invoice.paid" in body), now=fake.now())
    with fake.away():
        for _ in range(12):
            with pytest.raises(BillingUnavailable):
                events.process(event_id=row.pk, now=fake.now())
    row.refresh_from_db()
    assert row.next_attempt_at > fake.now() + timedelta(hours=5)
    return row


def _press(client: Client, *rows: StripeEvent) -> int:
    return confirm(client, "payments_stripeevent", "process_again", *rows).status_code


def test_an_event_is_enqueued_and_the_audit_log_names_the_actor(
    failed: StripeEvent,
    client: Client,
    fake: FakeBilling,
    enqueued: Enqueued,
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
) -> None:
    log_in_staff(client, "view_stripeevent", "process_stripeevent")
    enqueued.clear()
    with django_capture_on_commit_callbacks(execute=True):
        assert _press(client, failed) == 200
    assert enqueued == [("payments.process_event", failed.pk)]
    trace = LogEntry.objects.get()
    assert (trace.object_id, sentence_of(trace)) == (str(failed.pk), "process_again")
    failed.refresh_from_db()
    assert (failed.status, failed.attempts) == ("failed", 12)
    assert events.process_due(now=failed.next_attempt_at) == 1
    assert Payout.objects.count() == CreditEntry.objects.count() == 1


def test_the_view_permission_alone_does_not_allow_processing(
    failed: StripeEvent, client: Client, enqueued: Enqueued
) -> None:
    log_in_staff(client, "view_stripeevent")
    before = all_rows()
    enqueued.clear()
    assert b"process_again" not in client.get(reverse(LIST)).content
    assert _press(client, failed) == 403
    assert all_rows() == before
    assert enqueued == []
    assert not LogEntry.objects.exists()


def test_a_processed_event_is_not_processed_again(
    failed: StripeEvent,
    client: Client,
    fake: FakeBilling,
    enqueued: Enqueued,
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
) -> None:
    assert events.process(event_id=failed.pk, now=fake.now())
    log_in_staff(client)
    before = all_rows()
    enqueued.clear()
    with django_capture_on_commit_callbacks(execute=True):
        assert _press(client, failed) == 200
    assert all_rows() == before
    assert enqueued == []
    assert not LogEntry.objects.exists()


def test_process_again_returns_the_count_and_makes_events_due(
    failed: StripeEvent, fake: FakeBilling, enqueued: Enqueued
) -> None:
    other = receive_event(fake.events[0], now=fake.now() - timedelta(days=1))
    erase(PayoutRate.objects.filter(currency="usd"))
    assert events.process_again(events=StripeEvent.objects.all(), now=fake.now()) == 2
    assert set(StripeEvent.objects.values_list("next_attempt_at", flat=True)) == {fake.now()}
    assert events.process_due(now=fake.now()) == 1
    failed.refresh_from_db()
    other.refresh_from_db()
    assert (other.status, failed.status, failed.last_error[:12]) == ("processed", "failed", "rate-missing")
    assert events.process_again(events=StripeEvent.objects.all(), now=fake.now()) == 1
    assert events.process_again(events=StripeEvent.objects.none(), now=fake.now()) == 0
