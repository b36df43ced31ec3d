"""What support and finance do about payments: with a reason, by role, once; refused where the service refuses."""

import pytest
from celery import current_app
from django.contrib.admin.models import LogEntry

from credits.models import Allowance
from gateway.staff.audit import sentence_of
from payments.models import StripeEvent, Subscription
from payments.services import events
from tests.fakes.billing import FakeBilling
from tests.payments.payers import Payer
from tests.payments.webhook_events import receive_event
from tests.staff import address_of, browser_of, confirm, everything, member, messages_of, prove
from users.models import User

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("short_sidebar")]
SUPPORT = {"support"}


@pytest.fixture
def subscription(fake: FakeBilling, user: User, amount: int) -> Subscription:
    """Return a running subscription."""
    return Payer(fake, user).with_card().upsert(amount)


def test_a_subscription_is_ended_with_its_period(subscription: Subscription) -> None:
    text = prove("payments_subscription", "cancel", subscription, roles=SUPPORT)
    assert "It ends with the current period" in text
    subscription.refresh_from_db()
    assert (subscription.status, subscription.cancels_at_period_end) == ("active", True)


def test_a_subscription_is_ended_at_once(fake: FakeBilling, subscription: Subscription) -> None:
    for event in fake.events:
        events.process(event_id=receive_event(event, now=fake.now()).pk, now=fake.now())
    prove("payments_subscription", "cancel", subscription, roles=SUPPORT, immediately="on")
    subscription.refresh_from_db()
    assert subscription.status == "canceled"
    assert not Allowance.objects.filter(ends_at__gt=fake.now()).exists()


def test_a_subscription_that_has_already_ended_is_reported_and_not_changed(
    fake: FakeBilling, user: User, subscription: Subscription
) -> None:
    Payer(fake, user).cancel(immediately=True)
    before = everything()
    response = confirm(browser_of(member("support")), "payments_subscription", "cancel", subscription)
    assert "does not apply" in messages_of(response)
    assert everything() == before


def test_while_stripe_is_away_nothing_is_cancelled(fake: FakeBilling, subscription: Subscription) -> None:
    before = everything()
    with fake.away():
        response = confirm(browser_of(member("support")), "payments_subscription", "cancel", subscription)
    assert "repeat" in messages_of(response).lower() or "unavailable" in messages_of(response).lower()
    assert everything() == before


def test_an_event_is_processed_again(fake: FakeBilling, user: User, amount: int) -> None:
    Payer(fake, user).with_card().upsert(amount)
    row = receive_event(fake.events[0], now=fake.now())
    StripeEvent.objects.update(status="failed", attempts=7)
    prove("payments_stripeevent", "process_again", row, roles=SUPPORT)


def test_an_event_that_failed_is_dismissed_by_finance(fake: FakeBilling, user: User, amount: int) -> None:
    Payer(fake, user).with_card().upsert(amount)
    row = receive_event(fake.events[0], now=fake.now())
    untried = everything()
    refused = confirm(browser_of(member("finance")), "payments_stripeevent", "dismiss", row)
    assert "does not apply" in messages_of(refused)
    assert everything() == untried
    StripeEvent.objects.update(status="failed", attempts=7, last_error="IntegrityError")
    page = browser_of(member("finance")).get(address_of("payments_stripeevent", "dismiss", row))
    assert "after 7 attempts: IntegrityError" in page.content.decode()
    text = prove("payments_stripeevent", "dismiss", row, roles={"finance"})
    assert "It will not be retried" in text
    row.refresh_from_db()
    assert (row.status, row.outcome, row.last_error) == ("processed", "dismissed", "IntegrityError")


def test_finance_can_start_the_reconciliation_with_stripe(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    enqueued: list[str] = []
    monkeypatch.setattr(current_app, "send_task", lambda name, **_: enqueued.append(name))
    before = everything()
    for role in ("support", "operations"):
        assert confirm(browser_of(member(role)), "credits_reconciliationrun", "run").status_code == 403
    client = browser_of(member("finance"))
    confirm(client, "credits_reconciliationrun", "run", reason="")
    assert enqueued == []
    assert "A worker runs the comparison" in messages_of(confirm(client, "credits_reconciliationrun", "run"))
    assert everything() == before
    assert enqueued == ["payments.reconcile"]


def test_without_a_broker_the_action_reports_that_no_run_starts(db: None, broker_away: None) -> None:
    client = browser_of(member("finance"))
    text = messages_of(confirm(client, "credits_reconciliationrun", "run"))
    assert "Workers unavailable" in text
    assert "runs the comparison" not in text
    assert [sentence_of(entry) for entry in LogEntry.objects.order_by("pk")] == ["run begun", "run refused"]
