"""One that cannot be worked on now holds up no other of a sweep; a lost database ends the sweep."""

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from django.db import OperationalError, connection

from gateway.common.tasks import NothingSucceeded
from payments import tasks
from payments.models import BillingOperation, Customer, Payout, StripeEvent, Subscription
from payments.services import events, operations, reconciliation, synchronisation
from payments.services.reconciliation import repairs
from tests.factories import UserFactory, make
from tests.fakes.billing import FakeBilling
from tests.payments.faults import fault_injection, killed_before, once
from tests.payments.payers import Payer
from tests.threads import locked_elsewhere

pytestmark = pytest.mark.django_db(transaction=True)
HOUR = timedelta(hours=1)


@pytest.fixture
def payers(fake: FakeBilling, rates: dict[str, int]) -> list[Payer]:
    """Two users with a card."""
    return [Payer(fake, UserFactory.create()).with_card() for _ in range(2)]


@pytest.fixture
def subscribers(payers: list[Payer], amount: int) -> list[Payer]:
    """Two users who have paid; no event of it is processed yet."""
    for payer in payers:
        payer.upsert(amount)
    return payers


@pytest.fixture
def lose_the_server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[], None]:
    """Close the connection, and prevent new ones until the test ends."""

    def lose() -> None:
        monkeypatch.setitem(connection.settings_dict, "HOST", str(tmp_path))
        connection.close()

    return lose


def _begun(payer: Payer, amount: int) -> BillingOperation:
    with killed_before("create_subscription"):
        payer.upsert(amount)
    return BillingOperation.objects.get(user=payer.user, status="pending")


def test_a_locked_operation_does_not_hold_up_the_others(
    payers: list[Payer], fake: FakeBilling, amount: int, caplog: pytest.LogCaptureFixture
) -> None:
    busy, other = [_begun(payer, amount) for payer in payers]
    with locked_elsewhere(lambda: BillingOperation.objects.select_for_update().get(pk=busy.pk)):
        assert operations.resume_abandoned(now=fake.now() + HOUR) == 1
    assert f"operation {busy.pk} failed" in caplog.text
    assert [operation.pk for operation in BillingOperation.objects.filter(status="pending")] == [busy.pk]
    assert Subscription.objects.get().user_id == other.user_id
    assert operations.resume_abandoned(now=fake.now() + HOUR) == 1


def test_an_unexpected_error_at_one_invoice_does_not_hold_up_the_others(
    subscribers: list[Payer], fake: FakeBilling, caplog: pytest.LogCaptureFixture
) -> None:
    with fault_injection() as client:
        client.before["retrieve_subscription"] = once(_break)
        assert repairs.pay_out_missed_invoices(now=fake.now()) == 1
    assert "ValueError: a mistake" in caplog.text
    assert repairs.pay_out_missed_invoices(now=fake.now()) == 1
    assert [len(payer.payouts) for payer in subscribers] == [1, 1]


def test_a_sweep_fails_if_every_item_raises_an_unexpected_error(
    subscribers: list[Payer], fake: FakeBilling, caplog: pytest.LogCaptureFixture
) -> None:
    with fault_injection() as client:
        client.before["retrieve_subscription"] = _break
        with pytest.raises(NothingSucceeded):
            repairs.pay_out_missed_invoices(now=fake.now())
        # Those that the sweep met: the first did not keep it from the second.
        assert client.calls["retrieve_subscription"] == len(subscribers)
        for row in Subscription.objects.all():
            client.change(row.stripe_subscription_id, currency=None)
        with pytest.raises(NothingSucceeded):
            synchronisation.refresh_subscriptions(now=fake.now())
    assert caplog.text.count("ValueError: a mistake") == len(subscribers)
    assert len([record for record in caplog.records if "subscription sub_" in record.getMessage()]) == 2
    assert repairs.pay_out_missed_invoices(now=fake.now()) == 2
    assert synchronisation.refresh_subscriptions(now=fake.now()) == 2


def test_invoices_are_paid_out_although_events_cannot_be_stored(
    subscribers: list[Payer], fake: FakeBilling, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake.lose_deliveries()
    _capture(subscribers[0], fake)
    monkeypatch.setattr(events, "store", lambda **_: _break())
    with pytest.raises(NothingSucceeded):
        tasks.catch_up()
    assert [len(payer.payouts) for payer in subscribers] == [1, 1]


def test_an_event_that_another_transaction_inserts_does_not_hold_up_the_others(
    payers: list[Payer], fake: FakeBilling, caplog: pytest.LogCaptureFixture
) -> None:
    fake.lose_deliveries()
    first, second = [json.loads(_capture(payer, fake))["id"] for payer in payers]
    with locked_elsewhere(lambda: _store(first, fake)):
        assert events.fetch_undelivered(now=fake.now()) == 1
    assert f"event {first} failed" in caplog.text
    assert StripeEvent.objects.exclude(raw_body=b"").get().stripe_event_id == second


def test_a_repair_that_meets_a_lock_does_not_hold_up_the_others(
    subscribers: list[Payer], fake: FakeBilling, caplog: pytest.LogCaptureFixture
) -> None:
    busy, other = subscribers
    with locked_elsewhere(lambda: Customer.objects.select_for_update().get(user=busy.user)):
        run = reconciliation.reconcile(now=fake.now() + HOUR, repair=True)
    assert run is not None
    assert (run.counts["repaired"], run.finished_at is None) == (1, False)
    assert [finding["rule"] for finding in run.findings] == ["payout-missing"]
    assert "finding payout-missing" in caplog.text
    assert [payout.user for payout in Payout.objects.all()] == [other.user]


@pytest.mark.parametrize("sweep", ["resume_abandoned", "refresh_subscriptions", "repair"])
def test_without_a_database_the_sweep_ends(
    payers: list[Payer],
    fake: FakeBilling,
    amount: int,
    lose_the_server: Callable[[], None],
    caplog: pytest.LogCaptureFixture,
    sweep: str,
) -> None:
    now = fake.now() + HOUR
    for payer in payers:
        _begun(payer, amount) if sweep == "resume_abandoned" else payer.upsert(amount)
    sweeps: dict[str, tuple[Callable[[], object], str]] = {
        "resume_abandoned": (lambda: operations.resume_abandoned(now=now), "create_subscription"),
        "refresh_subscriptions": (
            lambda: synchronisation.refresh_subscriptions(now=now),
            "live_subscriptions",
        ),
        "repair": (lambda: reconciliation.reconcile(now=now, repair=True), "retrieve_subscription"),
    }
    run, method = sweeps[sweep]
    with fault_injection() as client:
        client.after[method] = lose_the_server
        with pytest.raises(OperationalError):
            run()
    assert client.calls[method] == 1
    assert not [
        record
        for record in caplog.records
        if record.name.startswith(("payments.services", "gateway.common.db"))
    ]


def _break() -> None:
    raise ValueError("a mistake")


def _capture(payer: Payer, fake: FakeBilling) -> bytes:
    payer.with_card()
    return fake.events[-1]


def _store(event_id: str, fake: FakeBilling) -> None:
    make(StripeEvent, stripe_event_id=event_id, raw_body=b"", received_at=fake.now())
