"""An event that can never be applied is dismissed: not tried any more, nothing applied, and no money lost by it."""

from datetime import timedelta

import pytest

from credits.models import CreditEntry
from payments.models import Payout, StripeEvent
from payments.services import events, reconciliation
from payments.services.reconciliation import repairs
from tests.fakes.billing import FakeBilling
from tests.payments.lying import lying
from tests.payments.mail import deliver, store
from tests.payments.meddling import meddling, once
from tests.payments.people import Payer
from tests.payments.rows import everything
from users.models import User

pytestmark = pytest.mark.django_db
GONE = "billing-refused: Stripe refused the request."


@pytest.fixture
def payer(fake: FakeBilling, user: User, amount: int) -> Payer:
    """A user who has paid; nothing of it has been told yet."""
    payer = Payer(fake, user).with_card()
    payer.upsert(amount)
    return payer


@pytest.fixture
def gone(fake: FakeBilling, payer: Payer) -> StripeEvent:
    """The event of the paid invoice, which Stripe did not know when it was tried."""
    row = store(next(body for body in fake.events if b"invoice.paid" in body), now=fake.now())
    with lying() as client:
        client.hide(row.object_id)
        assert not events.process(event_id=row.pk, now=fake.now())
    row.refresh_from_db()
    assert (row.status, row.last_error) == ("failed", GONE)
    return row


def test_it_is_not_tried_any_more_and_nothing_of_it_is_applied(fake: FakeBilling, gone: StripeEvent) -> None:
    later = fake.now() + timedelta(days=1)
    assert events.dismiss(event_id=gone.pk, now=later)
    with meddling() as client:
        assert events.process_due(now=later) == 0
        assert not events.process(event_id=gone.pk, now=later)
        assert not client.asked
    gone.refresh_from_db()
    assert (gone.status, gone.outcome, gone.processed_at) == ("processed", "dismissed", later)
    assert gone.last_error == GONE
    assert not Payout.objects.exists()
    assert not CreditEntry.objects.exists()


def test_a_second_delivery_does_not_wake_it(fake: FakeBilling, gone: StripeEvent) -> None:
    events.dismiss(event_id=gone.pk, now=fake.now())
    before = everything()
    deliver([bytes(gone.raw_body)], now=fake.now())
    assert everything() == before


def test_what_was_not_tried_or_is_processed_is_not_dismissed(fake: FakeBilling, payer: Payer) -> None:
    for body in fake.events:
        row = store(body, now=fake.now())
        assert not events.dismiss(event_id=row.pk, now=fake.now())
        assert events.process(event_id=row.pk, now=fake.now())
        before = everything()
        assert not events.dismiss(event_id=row.pk, now=fake.now())
        assert everything() == before


def test_dismissed_while_a_worker_asks_stripe_it_is_not_applied(fake: FakeBilling, gone: StripeEvent) -> None:
    with meddling() as client:
        client.after["retrieve_invoice"] = once(lambda: events.dismiss(event_id=gone.pk, now=fake.now()))
        assert not events.process(event_id=gone.pk, now=fake.now())
    assert StripeEvent.objects.values_list("status", "outcome", "attempts").get() == (
        "processed",
        "dismissed",
        1,
    )
    assert not Payout.objects.exists()


def test_dismissed_while_a_worker_fails_it_stays_dismissed(fake: FakeBilling, gone: StripeEvent) -> None:
    with lying() as liar, meddling() as client:
        liar.hide(gone.object_id)
        client.before["retrieve_invoice"] = once(lambda: events.dismiss(event_id=gone.pk, now=fake.now()))
        assert not events.process(event_id=gone.pk, now=fake.now())
    assert StripeEvent.objects.values_list("status", "outcome").get() == ("processed", "dismissed")


def test_money_that_it_was_about_after_all_is_paid_out_by_beat(
    fake: FakeBilling, payer: Payer, gone: StripeEvent
) -> None:
    events.dismiss(event_id=gone.pk, now=fake.now())
    assert repairs.pay_out_missed_invoices(now=fake.now()) == 1
    assert payer.balance == payer.payout.credits


def test_the_comparison_does_not_tell_of_it(fake: FakeBilling, payer: Payer, gone: StripeEvent) -> None:
    repairs.pay_out_missed_invoices(now=fake.now())
    night = fake.now() + timedelta(hours=1)

    def rules() -> list[object]:
        run = reconciliation.reconcile(now=night)
        assert run is not None
        return [finding["rule"] for finding in run.findings]

    assert rules() == ["event-failed"]
    events.dismiss(event_id=gone.pk, now=night)
    assert rules() == []
