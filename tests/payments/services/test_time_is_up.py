"""A worker that runs out of time stops, and holds it against nothing that it was at."""

from collections.abc import Iterator
from datetime import timedelta

import pytest
from billiard.exceptions import SoftTimeLimitExceeded

from payments.models import BillingOperation, Payout, StripeEvent
from payments.services import events, operations
from tests.fakes.billing import FakeBilling
from tests.payments.mail import store
from tests.payments.meddling import MeddlingClient, killed_after, meddling
from tests.payments.people import Payer
from users.models import User

pytestmark = pytest.mark.django_db


@pytest.fixture
def subscriber(fake: FakeBilling, user: User, amount: int) -> Payer:
    """A user whose subscription has begun; no event of it has been told yet."""
    payer = Payer(fake, user).with_card()
    payer.upsert(amount)
    return payer


@pytest.fixture
def slow(subscriber: Payer) -> Iterator[MeddlingClient]:
    """A client that stands in front of the fake."""
    with meddling() as client:
        yield client


def _time_is_up() -> None:
    raise SoftTimeLimitExceeded


@pytest.mark.parametrize("method", ["retrieve_invoice", "returned_money"])
def test_the_event_it_was_at_is_as_new(slow: MeddlingClient, fake: FakeBilling, method: str) -> None:
    paid = store(next(body for body in fake.events if b"invoice.paid" in body), now=fake.now())
    slow.before[method] = _time_is_up
    with pytest.raises(SoftTimeLimitExceeded):
        events.process_due(now=fake.now())
    paid.refresh_from_db()
    assert (paid.status, paid.attempts, paid.last_error) == ("received", 0, "")
    assert not Payout.objects.exists()
    slow.before.clear()
    assert events.process_due(now=fake.now()) == 1
    assert Payout.objects.count() == 1


def test_no_later_event_is_begun(slow: MeddlingClient, fake: FakeBilling) -> None:
    for body in fake.events:
        store(body, now=fake.now())
    slow.before["retrieve_subscription"] = _time_is_up
    with pytest.raises(SoftTimeLimitExceeded):
        events.process_due(now=fake.now())
    assert slow.asked["retrieve_subscription"] == 1
    assert not StripeEvent.objects.filter(status="failed").exists()


def test_the_operation_it_was_at_waits_for_the_next_sweep(
    slow: MeddlingClient, subscriber: Payer, fake: FakeBilling, amount: int
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
