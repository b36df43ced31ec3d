"""Two processes ask Stripe one after the other and write in the other order: the newer response stays."""

import secrets

import pytest
from django.db import transaction

from payments.errors import StaleSnapshot
from payments.models import StripeEvent, Subscription
from payments.services import events, synchronisation
from payments.services.snapshots import fetch_snapshot
from tests.fakes.billing import FakeBilling
from tests.payments.faults import fault_injection, once
from tests.payments.payers import Payer
from tests.payments.stripe_accounts import DoubleAccount
from tests.payments.webhook_events import process_events, receive_event, webhook_body
from tests.threads import waits_for_this_transaction
from users.models import User


def test_a_snapshot_read_before_a_change_does_not_undo_it(
    double: DoubleAccount, running: Payer, amount: int
) -> None:
    (event,) = double.events("customer.subscription.created")
    double.controls.reissue(event.id)
    row = receive_event(webhook_body(double.events("customer.subscription.created")[-1]), now=double.now())
    with fault_injection() as client:
        client.after["retrieve_subscription"] = once(lambda: running.upsert(2 * amount))
        assert events.process(event_id=row.pk, now=double.now())
    assert running.subscription.amount_minor == 2 * amount
    assert client.calls["retrieve_subscription"] >= 2


def test_a_snapshot_read_before_a_refund_does_not_give_credits_again(
    double: DoubleAccount, running: Payer, amount: int
) -> None:
    payment = running.payout.stripe_payment_intent_id
    double.refund(payment, amount // 4)
    row = receive_event(webhook_body(double.events("refund.created")[0]), now=double.now())

    def refund_more() -> None:
        double.refund(payment, amount // 2)
        process_events([webhook_body(double.events("refund.created")[1])], now=double.now())

    with fault_injection() as client:
        client.after["returned_money"] = once(refund_more)
        assert events.process(event_id=row.pk, now=double.now())
    taken = running.payout.credits * (amount // 4 + amount // 2) // amount
    assert running.balance == running.payout.credits - taken


def test_the_response_to_a_command_is_read_again_after_a_concurrent_write(
    double: DoubleAccount, running: Payer, amount: int
) -> None:
    """The dashboard changes the subscription right after our command, and its webhook is processed first."""

    def meanwhile() -> None:
        double.v1.subscriptions.update(
            running.subscription.stripe_subscription_id, {"cancel_at_period_end": True}
        )
        synchronisation.sync_subscription(
            subscription_id=running.subscription.stripe_subscription_id, now=double.now()
        )

    with fault_injection() as client:
        client.after["update_subscription"] = once(meanwhile)
        changed = running.upsert(3 * amount)
    assert (changed.amount_minor, changed.cancels_at_period_end) == (3 * amount, True)


def test_older_responses_written_late_do_not_make_a_newer_one_stale(
    double: DoubleAccount, running: Payer
) -> None:
    subscription_id = running.subscription.stripe_subscription_id
    older = fetch_snapshot(event_type="customer.subscription.updated", object_id=subscription_id)
    double.v1.subscriptions.update(subscription_id, {"cancel_at_period_end": True})

    def write_late() -> None:
        older.apply(cause="late", now=double.now())

    with fault_injection() as client:
        client.after["retrieve_subscription"] = write_late
        stored = synchronisation.sync_subscription(subscription_id=subscription_id, now=double.now())
    assert stored is not None
    assert stored.cancels_at_period_end
    assert client.calls["retrieve_subscription"] == 1


def test_an_older_response_written_late_does_not_undo_a_newer_one(
    double: DoubleAccount, running: Payer
) -> None:
    subscription_id = running.subscription.stripe_subscription_id
    older = fetch_snapshot(event_type="customer.subscription.updated", object_id=subscription_id)
    double.v1.subscriptions.update(subscription_id, {"cancel_at_period_end": True})
    synchronisation.sync_subscription(subscription_id=subscription_id, now=double.now())

    with pytest.raises(StaleSnapshot):
        older.apply(cause="late", now=double.now())
    assert running.subscription.cancels_at_period_end


@pytest.mark.django_db(transaction=True)
def test_an_older_response_waits_for_a_newer_one_and_is_then_stale(
    double: DoubleAccount, running: Payer
) -> None:
    subscription_id, customer = running.subscription.stripe_subscription_id, running.customer
    older = fetch_snapshot(event_type="customer.subscription.updated", object_id=subscription_id)
    double.v1.subscriptions.update(subscription_id, {"cancel_at_period_end": True})
    newer = fetch_snapshot(event_type="customer.subscription.updated", object_id=subscription_id)

    def write_the_older() -> None:
        with transaction.atomic(), pytest.raises(StaleSnapshot):
            older.apply(cause="late", now=double.now())

    with waits_for_this_transaction(write_the_older) as written:
        is_stale = synchronisation.record_sync(
            customer=customer, requested_at=newer.requested_at, received_at=newer.received_at
        )
        (state,) = newer.subscriptions
        synchronisation.store_subscription(
            customer=customer, state=state, is_stale=is_stale, now=double.now()
        )

    assert written.result() is None
    assert running.subscription.cancels_at_period_end


def test_a_response_without_changes_makes_earlier_requests_stale(
    double: DoubleAccount, running: Payer
) -> None:
    """Stripe goes there and back: who read the state between must not write it after who read the last one."""
    subscription_id = running.subscription.stripe_subscription_id
    double.v1.subscriptions.update(subscription_id, {"cancel_at_period_end": True})
    between = fetch_snapshot(event_type="customer.subscription.updated", object_id=subscription_id)
    double.v1.subscriptions.update(subscription_id, {"cancel_at_period_end": False})
    synchronisation.sync_subscription(subscription_id=subscription_id, now=double.now())

    with pytest.raises(StaleSnapshot):
        between.apply(cause="late", now=double.now())
    assert not running.subscription.cancels_at_period_end


def test_a_request_that_is_always_stale_gets_409_and_an_event_is_kept(
    double: DoubleAccount, running: Payer, amount: int
) -> None:
    (event,) = double.events("customer.subscription.created")
    double.controls.reissue(event.id)
    row = receive_event(webhook_body(double.events("customer.subscription.created")[-1]), now=double.now())
    amounts = iter(range(amount + 1, amount + 100))

    with fault_injection() as client:

        def interfere() -> None:
            with client.paused():
                running.upsert(next(amounts))

        client.after["retrieve_subscription"] = interfere
        assert not events.process(event_id=row.pk, now=double.now())
    row.refresh_from_db()
    assert (row.status, row.last_error.split(":")[0]) == ("failed", "billing-in-progress")
    assert Subscription.objects.get().amount_minor == next(amounts) - 1
    assert events.process(event_id=row.pk, now=double.now())


pytestmark = pytest.mark.django_db


def test_a_subscription_made_in_the_dashboard_replaces_one_whose_end_was_not_reported(
    fake: FakeBilling, user: User, amount: int
) -> None:
    payer = Payer(fake, user).with_card()
    old = payer.upsert(amount).stripe_subscription_id
    fake.cancel_subscription(subscription_id=old, key=secrets.token_hex(8))
    new = fake.create_subscription(
        customer_id=payer.customer.stripe_customer_id,
        amount_minor=amount + 1,
        currency="usd",
        cancels_at_period_end=False,
        key=secrets.token_hex(8),
    ).subscription_id
    assert Subscription.objects.live().get().stripe_subscription_id == old
    event_count = len(fake.events)
    payer.with_card()
    # A card is the one thing whose event is about all of a customer's subscriptions at once.
    card = next(body for body in fake.events[event_count:] if b"setup_intent.succeeded" in body)
    process_events([card], now=fake.now())
    assert StripeEvent.objects.values_list("status", "last_error").get() == ("processed", "")
    assert dict(Subscription.objects.values_list("stripe_subscription_id", "status")) == {
        old: "canceled",
        new: "active",
    }
