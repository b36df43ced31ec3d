"""Support lets a failed event be processed again."""

from datetime import timedelta

import pytest
from celery import current_app
from django.contrib.admin.models import LogEntry
from django.test import Client
from django.urls import reverse
from pytest_django import DjangoCaptureOnCommitCallbacks

from credits.models import CreditEntry
from gateway.admin.audit import sentence_of
from payments.errors import BillingUnavailable
from payments.models import Payout, PayoutRate, StripeEvent
from payments.services import events
from tests.fakes.billing import FakeBilling
from tests.payments.mail import store
from tests.payments.people import Payer
from tests.payments.rows import everything
from tests.payments.staff import browser_of
from tests.staff import confirm
from users.models import User

pytestmark = pytest.mark.django_db
LIST = "admin:payments_stripeevent_changelist"
Rung = list[tuple[str, object]]


@pytest.fixture
def rung(monkeypatch: pytest.MonkeyPatch) -> Rung:
    """What the worker is asked to do."""
    bells: Rung = []
    monkeypatch.setattr(
        current_app, "send_task", lambda name, *, kwargs, **_: bells.append((name, kwargs["event_id"]))
    )
    return bells


@pytest.fixture
def failed(fake: FakeBilling, user: User, amount: int) -> StripeEvent:
    """An event that found Stripe away so often that the next try is hours ahead."""
    Payer(fake, user).with_card().upsert(amount)
    row = store(next(body for body in fake.events if b"invoice.paid" in body), now=fake.now())
    with fake.away():
        for _ in range(12):
            with pytest.raises(BillingUnavailable):
                events.process(event_id=row.pk, now=fake.now())
    row.refresh_from_db()
    assert row.next_attempt_at > fake.now() + timedelta(hours=5)
    return row


def _press(client: Client, *rows: StripeEvent) -> int:
    return confirm(client, "payments_stripeevent", "process_again", *rows).status_code


def test_it_is_tried_now_and_the_trace_says_who_asked(
    failed: StripeEvent,
    client: Client,
    fake: FakeBilling,
    rung: Rung,
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
) -> None:
    browser_of(client, "view_stripeevent", "process_stripeevent")
    rung.clear()
    with django_capture_on_commit_callbacks(execute=True):
        assert _press(client, failed) == 200
    assert rung == [("payments.process_event", failed.pk)]
    trace = LogEntry.objects.get()
    assert (trace.object_id, sentence_of(trace)) == (str(failed.pk), "process_again")
    failed.refresh_from_db()
    assert (failed.status, failed.attempts) == ("failed", 12)
    assert events.process_due(now=failed.next_attempt_at) == 1
    assert Payout.objects.count() == CreditEntry.objects.count() == 1


def test_who_may_only_look_may_not_ask(failed: StripeEvent, client: Client, rung: Rung) -> None:
    browser_of(client, "view_stripeevent")
    before = everything()
    rung.clear()
    assert b"process_again" not in client.get(reverse(LIST)).content
    assert _press(client, failed) == 403
    assert everything() == before
    assert rung == []
    assert not LogEntry.objects.exists()


def test_what_is_processed_is_left_alone(
    failed: StripeEvent,
    client: Client,
    fake: FakeBilling,
    rung: Rung,
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
) -> None:
    assert events.process(event_id=failed.pk, now=fake.now())
    browser_of(client)
    before = everything()
    rung.clear()
    with django_capture_on_commit_callbacks(execute=True):
        assert _press(client, failed) == 200
    assert everything() == before
    assert rung == []
    assert not LogEntry.objects.exists()


def test_the_service_tells_how_many_and_makes_them_due(
    failed: StripeEvent, fake: FakeBilling, rung: Rung
) -> None:
    other = store(fake.events[0], now=fake.now() - timedelta(days=1))
    PayoutRate.objects.filter(currency="usd").delete()
    assert events.process_again(events=StripeEvent.objects.all(), now=fake.now()) == 2
    assert set(StripeEvent.objects.values_list("next_attempt_at", flat=True)) == {fake.now()}
    assert events.process_due(now=fake.now()) == 1
    failed.refresh_from_db()
    other.refresh_from_db()
    assert (other.status, failed.status, failed.last_error[:12]) == ("processed", "failed", "rate-missing")
    assert events.process_again(events=StripeEvent.objects.all(), now=fake.now()) == 1
    assert events.process_again(events=StripeEvent.objects.none(), now=fake.now()) == 0
