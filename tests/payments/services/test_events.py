"""The worker: an event is applied and marked processed together, or kept with its reason and tried again."""

import json
import random
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from celery import current_app
from django.db import connection
from pytest_django import DjangoCaptureOnCommitCallbacks

from credits.models import CreditEntry
from payments.errors import BillingUnavailable
from payments.models import Payout, StripeEvent
from payments.services import events
from tests.fakes.billing import FakeBilling
from tests.killing import ProcessKilled
from tests.payments.faults import killed_after
from tests.payments.payers import Payer
from tests.payments.webhook_events import receive_event

pytestmark = pytest.mark.django_db


@pytest.fixture
def paid(subscriber: Payer, fake: FakeBilling) -> StripeEvent:
    """The stored `invoice.paid` of the first period."""
    return receive_event(_body(fake, "invoice.paid"), now=fake.now())


def _body(fake: FakeBilling, type: str) -> bytes:
    return next(body for body in fake.events if json.loads(body)["type"] == type)


def test_an_event_is_applied_once(paid: StripeEvent, fake: FakeBilling) -> None:
    assert [events.process(event_id=paid.pk, now=fake.now()) for _ in range(3)] == [True, False, False]
    paid.refresh_from_db()
    assert (paid.status, paid.processed_at, paid.attempts) == ("processed", fake.now(), 1)
    assert paid.outcome == "applied"
    assert Payout.objects.count() == CreditEntry.objects.count() == 1


def test_a_failure_is_kept_with_its_reason_and_the_time_of_the_next_try(
    paid: StripeEvent, fake: FakeBilling
) -> None:
    now, waits = fake.now(), []
    for _ in range(14):
        with fake.away(), pytest.raises(BillingUnavailable):
            events.process(event_id=paid.pk, now=now)
        paid.refresh_from_db()
        waits.append(int((paid.next_attempt_at - now).total_seconds()))
    assert (paid.status, paid.attempts, paid.processed_at, paid.outcome) == ("failed", 14, None, "")
    assert paid.last_error.startswith("billing-unavailable: ")
    assert waits == [10 * 2**step for step in range(12)] + [6 * 3600] * 2
    assert not Payout.objects.exists()
    assert events.process(event_id=paid.pk, now=now)
    paid.refresh_from_db()
    assert (paid.status, paid.last_error) == ("processed", "")


def test_the_sweep_processes_only_due_events(paid: StripeEvent, fake: FakeBilling) -> None:
    with fake.away():
        assert events.process_due(now=fake.now()) == 0
    assert events.process_due(now=fake.now()) == 0
    assert events.process_due(now=fake.now() + timedelta(seconds=10)) == 1
    assert events.process_due(now=fake.now() + timedelta(days=1)) == 0


def test_the_sweep_stops_if_stripe_is_down(subscriber: Payer, fake: FakeBilling) -> None:
    rows = [receive_event(body, now=fake.now()) for body in fake.events]
    fake.calls.clear()
    with fake.away():
        assert events.process_due(now=fake.now()) == 0
    assert sum(fake.calls.values()) == 1
    assert StripeEvent.objects.filter(status="received").count() == len(rows) - 1


def test_the_sweep_runs_until_its_time_limit(
    subscriber: Payer, fake: FakeBilling, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(random.randint(51, 60)):
        name = f"sub_{secrets.token_hex(8)}"
        receive_event(_foreign("customer.subscription.updated", name, fake), now=fake.now())
    with monkeypatch.context() as patch:
        patch.setattr(events, "SWEEP_SECONDS", 0.0)
        events.process_due(now=fake.now())
    assert not StripeEvent.objects.exclude(status="received").exists()
    events.process_due(now=fake.now())
    assert not StripeEvent.objects.filter(status="received").exists()


def test_an_event_that_cannot_be_applied_holds_up_no_other(subscriber: Payer, fake: FakeBilling) -> None:
    broken = receive_event(
        _foreign("customer.subscription.updated", f"sub_{secrets.token_hex(8)}", fake), now=fake.now()
    )
    receive_event(_body(fake, "invoice.paid"), now=fake.now())
    assert events.process_due(now=fake.now()) == 1
    broken.refresh_from_db()
    assert (broken.status, broken.last_error[:15]) == ("failed", "billing-refused")
    assert Payout.objects.count() == 1


@contextmanager
def _dying_at(statement: str) -> Iterator[None]:
    """Let the process die when it sends this statement."""

    def execute(run: Any, sql: str, *rest: Any) -> Any:
        if sql.startswith(statement):
            raise ProcessKilled
        return run(sql, *rest)

    with connection.execute_wrapper(execute):
        yield


@pytest.mark.parametrize(
    "statement",
    [
        'UPDATE "payments_subscription"',
        "INSERT INTO credits_allowance",
        "WITH locked",
        'INSERT INTO "payments_payout"',
        'UPDATE "payments_stripeevent"',
    ],
)
def test_a_process_killed_at_any_statement_leaves_nothing_half_done_and_the_sweep_finishes(
    paid: StripeEvent, fake: FakeBilling, statement: str
) -> None:
    with _dying_at(statement), pytest.raises(ProcessKilled):
        events.process(event_id=paid.pk, now=fake.now())
    assert not Payout.objects.exists()
    assert not CreditEntry.objects.exists()
    paid.refresh_from_db()
    assert (paid.status, paid.attempts) == ("received", 0)
    assert events.process_due(now=fake.now()) == 1
    assert Payout.objects.count() == CreditEntry.objects.count() == 1


def test_the_sweep_finishes_an_event_killed_after_stripes_response(
    paid: StripeEvent, fake: FakeBilling
) -> None:
    with killed_after("retrieve_invoice"):
        events.process(event_id=paid.pk, now=fake.now())
    assert events.process_due(now=fake.now()) == 1
    assert Payout.objects.count() == 1


def test_events_of_other_types_are_processed_as_nothing_to_do(fake: FakeBilling) -> None:
    fake.calls.clear()
    row = receive_event(_foreign("customer.created", "cus_1", fake), now=fake.now())
    assert events.process(event_id=row.pk, now=fake.now())
    assert not fake.calls
    row.refresh_from_db()
    assert (row.status, row.outcome) == ("processed", "nothing")


@pytest.mark.parametrize("type", ["invoice.created", "invoice.deleted"])
def test_an_unused_event_about_an_object_that_is_deleted_since_is_nothing_to_do(
    fake: FakeBilling, type: str
) -> None:
    row = receive_event(_foreign(type, f"in_{secrets.token_hex(8)}", fake), now=fake.now())
    assert events.process(event_id=row.pk, now=fake.now())
    row.refresh_from_db()
    assert (row.status, row.outcome, Payout.objects.count()) == ("processed", "nothing", 0)


def test_a_used_event_about_an_object_that_stripe_does_not_have_fails(fake: FakeBilling) -> None:
    row = receive_event(_foreign("invoice.paid", f"in_{secrets.token_hex(8)}", fake), now=fake.now())
    assert not events.process(event_id=row.pk, now=fake.now())
    row.refresh_from_db()
    assert (row.status, row.last_error[:15]) == ("failed", "billing-refused")


def test_storing_an_event_enqueues_its_processing_after_the_commit(
    subscriber: Payer,
    fake: FakeBilling,
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    enqueued: list[tuple[str, dict[str, object]]] = []
    monkeypatch.setattr(
        current_app, "send_task", lambda name, *, kwargs, **_: enqueued.append((name, kwargs))
    )
    with django_capture_on_commit_callbacks(execute=True):
        row = receive_event(_body(fake, "invoice.paid"), now=fake.now())
        assert enqueued == []
    assert enqueued == [("payments.process_event", {"event_id": row.pk})]
    # Sent again before it was processed, it rings again; afterwards it does not.
    with django_capture_on_commit_callbacks(execute=True):
        receive_event(_body(fake, "invoice.paid"), now=fake.now())
    assert enqueued == [("payments.process_event", {"event_id": row.pk})] * 2
    events.process(event_id=row.pk, now=fake.now())
    with django_capture_on_commit_callbacks(execute=True):
        receive_event(_body(fake, "invoice.paid"), now=fake.now())
    assert len(enqueued) == 2


def _foreign(type: str, object_id: str, fake: FakeBilling) -> bytes:
    event = {
        "object": "event",
        "id": f"evt_{secrets.token_hex(8)}",
        "type": type,
        "created": int(fake.now().timestamp()),
        "livemode": False,
        "data": {"object": {"id": object_id}},
    }
    return json.dumps(event).encode()
