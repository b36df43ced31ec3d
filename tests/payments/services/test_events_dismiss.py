"""An event that can never be applied is dismissed: not tried any more, nothing applied, and no money lost by it."""

from datetime import timedelta

import pytest

from credits.models import CreditEntry
from payments.models import Payout, StripeEvent
from payments.services import events, reconciliation
from payments.services.reconciliation import repairs
from tests.fakes.billing import FakeBilling
from tests.payments.faults import fault_injection, once
from tests.payments.payers import Payer
from tests.payments.rows import all_rows
from tests.payments.webhook_events import process_events, receive_event

pytestmark = pytest.mark.django_db
GONE = "billing-refused: Stripe refused the request."


@pytest.fixture
def failed_event(fake: FakeBilling, subscriber: Payer) -> StripeEvent:
    """The event of the paid invoice, which Stripe did not know when it was tried."""
    row = receive_event(next(body for body in fake.events if b"invoice.paid" in body), now=fake.now())
    with fault_injection() as client:
        client.hide(row.object_id)
        assert not events.process(event_id=row.pk, now=fake.now())
    row.refresh_from_db()
    assert (row.status, row.last_error) == ("failed", GONE)
    return row


def test_a_dismissed_event_is_not_tried_again_and_changes_nothing(
    fake: FakeBilling, failed_event: StripeEvent
) -> None:
    later = fake.now() + timedelta(days=1)
    assert events.dismiss(event_id=failed_event.pk, now=later)
    with fault_injection() as client:
        assert events.process_due(now=later) == 0
        assert not events.process(event_id=failed_event.pk, now=later)
        assert not client.calls
    failed_event.refresh_from_db()
    assert (failed_event.status, failed_event.outcome, failed_event.processed_at) == (
        "processed",
        "dismissed",
        later,
    )
    assert failed_event.last_error == GONE
    assert not Payout.objects.exists()
    assert not CreditEntry.objects.exists()


def test_a_second_delivery_does_not_reopen_a_dismissed_event(
    fake: FakeBilling, failed_event: StripeEvent
) -> None:
    events.dismiss(event_id=failed_event.pk, now=fake.now())
    before = all_rows()
    process_events([bytes(failed_event.raw_body)], now=fake.now())
    assert all_rows() == before


def test_only_a_failed_event_can_be_dismissed(fake: FakeBilling, subscriber: Payer) -> None:
    for body in fake.events:
        row = receive_event(body, now=fake.now())
        assert not events.dismiss(event_id=row.pk, now=fake.now())
        assert events.process(event_id=row.pk, now=fake.now())
        before = all_rows()
        assert not events.dismiss(event_id=row.pk, now=fake.now())
        assert all_rows() == before


def test_an_event_dismissed_while_its_snapshot_is_fetched_is_not_applied(
    fake: FakeBilling, failed_event: StripeEvent
) -> None:
    with fault_injection() as client:
        client.after["retrieve_invoice"] = once(
            lambda: events.dismiss(event_id=failed_event.pk, now=fake.now())
        )
        assert not events.process(event_id=failed_event.pk, now=fake.now())
    assert StripeEvent.objects.values_list("status", "outcome", "attempts").get() == (
        "processed",
        "dismissed",
        1,
    )
    assert not Payout.objects.exists()


def test_an_event_dismissed_while_a_worker_fails_stays_dismissed(
    fake: FakeBilling, failed_event: StripeEvent
) -> None:
    with fault_injection() as client:
        client.hide(failed_event.object_id)
        client.before["retrieve_invoice"] = once(
            lambda: events.dismiss(event_id=failed_event.pk, now=fake.now())
        )
        assert not events.process(event_id=failed_event.pk, now=fake.now())
    assert StripeEvent.objects.values_list("status", "outcome").get() == ("processed", "dismissed")


def test_beat_pays_out_the_invoice_of_a_dismissed_event(
    fake: FakeBilling, subscriber: Payer, failed_event: StripeEvent
) -> None:
    events.dismiss(event_id=failed_event.pk, now=fake.now())
    assert repairs.pay_out_missed_invoices(now=fake.now()) == 1
    assert subscriber.balance == subscriber.payout.credits


def test_a_dismissed_event_is_not_a_finding_of_the_reconciliation(
    fake: FakeBilling, subscriber: Payer, failed_event: StripeEvent
) -> None:
    repairs.pay_out_missed_invoices(now=fake.now())
    night = fake.now() + timedelta(hours=1)

    def rules() -> list[object]:
        run = reconciliation.reconcile(now=night)
        assert run is not None
        return [finding["rule"] for finding in run.findings]

    assert rules() == ["event-failed"]
    events.dismiss(event_id=failed_event.pk, now=night)
    assert rules() == []
