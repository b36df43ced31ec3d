"""A worker that runs out of time stops, and marks nothing as failed."""

from collections.abc import Iterator
from datetime import timedelta

import pytest
from billiard.exceptions import SoftTimeLimitExceeded

from payments.models import BillingOperation, Payout, StripeEvent
from payments.services import events, operations
from tests.fakes.billing import FakeBilling
from tests.payments.faults import FaultInjector, fault_injection, killed_after
from tests.payments.payers import Payer
from tests.payments.webhook_events import receive_event

pytestmark = pytest.mark.django_db


@pytest.fixture
def slow(subscriber: Payer) -> Iterator[FaultInjector]:
    """A fault injector in front of the fake."""
    with fault_injection() as client:
        yield client


def _time_is_up() -> None:
    raise SoftTimeLimitExceeded


@pytest.mark.parametrize("method", ["retrieve_invoice", "returned_money"])
def test_an_event_whose_worker_ran_out_of_time_is_not_marked_as_failed(
    slow: FaultInjector, fake: FakeBilling, method: str
) -> None:
    paid = receive_event(next(body for body in fake.events if b"invoice.paid" in body), now=fake.now())
    slow.before[method] = _time_is_up
    with pytest.raises(SoftTimeLimitExceeded):
        events.process_due(now=fake.now())
    paid.refresh_from_db()
    assert (paid.status, paid.attempts, paid.last_error) == ("received", 0, "")
    assert not Payout.objects.exists()
    slow.before.clear()
    assert events.process_due(now=fake.now()) == 1
    assert Payout.objects.count() == 1


def test_a_worker_that_ran_out_of_time_starts_no_other_event(slow: FaultInjector, fake: FakeBilling) -> None:
    for body in fake.events:
        receive_event(body, now=fake.now())
    slow.before["retrieve_subscription"] = _time_is_up
    with pytest.raises(SoftTimeLimitExceeded):
        events.process_due(now=fake.now())
    assert slow.calls["retrieve_subscription"] == 1
    assert not StripeEvent.objects.filter(status="failed").exists()


def test_an_operation_whose_worker_ran_out_of_time_waits_for_the_next_sweep(
    slow: FaultInjector, subscriber: Payer, fake: FakeBilling, amount: int
) -> None:
    with killed_after("update_subscription"):
        subscriber.upsert(2 * amount)
    later = fake.now() + timedelta(hours=1)
    slow.before["update_subscription"] = _time_is_up
    with pytest.raises(SoftTimeLimitExceeded):
        operations.resume_abandoned(now=later)
    assert BillingOperation.objects.filter(status="pending").count() == 1
    slow.before.clear()
    assert operations.resume_abandoned(now=later) == 1
    assert subscriber.subscription.amount_minor == 2 * amount
