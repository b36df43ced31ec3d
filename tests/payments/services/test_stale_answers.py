"""Two processes ask Stripe one after the other and write in the other order: the newer answer stays."""

import pytest
from django.db import transaction

from payments.errors import StaleSnapshot
from payments.models import Subscription
from payments.services import events, synchronisation
from tests.payments.mail import body_of, deliver, deliver_all, store
from tests.payments.meddling import meddling, once
from tests.payments.people import Payer
from tests.payments.worlds import DoubleWorld
from tests.threads import waits_for_this_transaction

pytestmark = pytest.mark.django_db


@pytest.fixture
def running(double: DoubleWorld, payer: Payer, amount: int) -> Payer:
    """A user whose subscription runs and is paid out."""
    payer.upsert(amount)
    deliver_all(double)
    return payer


def test_what_a_worker_read_before_a_change_does_not_undo_it(
    double: DoubleWorld, running: Payer, amount: int
) -> None:
    (event,) = double.events("customer.subscription.created")
    double.controls.reissue(event.id)
    row = store(body_of(double.events("customer.subscription.created")[-1]), now=double.now())
    with meddling() as client:
        client.after["retrieve_subscription"] = once(lambda: running.upsert(2 * amount))
        assert events.process(event_id=row.pk, now=double.now())
    assert running.subscription.amount_minor == 2 * amount
    assert client.asked["retrieve_subscription"] > 2


def test_what_a_worker_read_before_a_refund_does_not_give_credits_again(
    double: DoubleWorld, running: Payer, amount: int
) -> None:
    payment = running.payout.stripe_payment_intent_id
    double.refund(payment, amount // 4)
    row = store(body_of(double.events("refund.created")[0]), now=double.now())

    def refund_more() -> None:
        double.refund(payment, amount // 2)
        deliver([body_of(double.events("refund.created")[1])], now=double.now())

    with meddling() as client:
        client.after["returned_money"] = once(refund_more)
        assert events.process(event_id=row.pk, now=double.now())
    gone = running.payout.credits * (amount // 4 + amount // 2) // amount
    assert running.balance == running.payout.credits - gone


def test_the_answer_to_an_order_is_read_again_where_somebody_wrote_meanwhile(
    double: DoubleWorld, running: Payer, amount: int
) -> None:
    """The dashboard changes the subscription right after our order; the webhook is faster than we are."""

    def meanwhile() -> None:
        double.v1.subscriptions.update(
            running.subscription.stripe_subscription_id, {"cancel_at_period_end": True}
        )
        synchronisation.sync_subscription(
            subscription_id=running.subscription.stripe_subscription_id, now=double.now()
        )

    with meddling() as client:
        client.after["update_subscription"] = once(meanwhile)
        changed = running.upsert(3 * amount)
    assert (changed.amount_minor, changed.cancels_at_period_end) == (3 * amount, True)


def test_older_answers_that_others_are_late_to_write_do_not_stand_in_the_way_of_a_newer_one(
    double: DoubleWorld, running: Payer
) -> None:
    subscription_id = running.subscription.stripe_subscription_id
    older = synchronisation.fetch_snapshot(
        event_type="customer.subscription.updated", object_id=subscription_id
    )
    double.v1.subscriptions.update(subscription_id, {"cancel_at_period_end": True})

    def write_late() -> None:
        older.apply(cause="late", now=double.now())

    with meddling() as client:
        client.after["retrieve_subscription"] = write_late
        stored = synchronisation.sync_subscription(subscription_id=subscription_id, now=double.now())
    assert stored is not None
    assert stored.cancels_at_period_end
    assert client.asked["retrieve_subscription"] == 1


def test_an_older_answer_that_is_written_late_does_not_undo_a_newer_one(
    double: DoubleWorld, running: Payer
) -> None:
    subscription_id = running.subscription.stripe_subscription_id
    older = synchronisation.fetch_snapshot(
        event_type="customer.subscription.updated", object_id=subscription_id
    )
    double.v1.subscriptions.update(subscription_id, {"cancel_at_period_end": True})
    synchronisation.sync_subscription(subscription_id=subscription_id, now=double.now())

    with pytest.raises(StaleSnapshot):
        older.apply(cause="late", now=double.now())
    assert running.subscription.cancels_at_period_end


@pytest.mark.django_db(transaction=True)
def test_an_older_answer_waits_until_a_newer_one_is_written_and_is_outdated_then(
    double: DoubleWorld, running: Payer
) -> None:
    subscription_id, customer = running.subscription.stripe_subscription_id, running.customer
    older = synchronisation.fetch_snapshot(
        event_type="customer.subscription.updated", object_id=subscription_id
    )
    double.v1.subscriptions.update(subscription_id, {"cancel_at_period_end": True})
    newer = synchronisation.fetch_snapshot(
        event_type="customer.subscription.updated", object_id=subscription_id
    )

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


def test_an_agreeing_answer_contests_what_was_asked_for_before_it_was_there(
    double: DoubleWorld, running: Payer
) -> None:
    """Stripe goes there and back: who read the state between must not write it after who read the last one."""
    subscription_id = running.subscription.stripe_subscription_id
    double.v1.subscriptions.update(subscription_id, {"cancel_at_period_end": True})
    between = synchronisation.fetch_snapshot(
        event_type="customer.subscription.updated", object_id=subscription_id
    )
    double.v1.subscriptions.update(subscription_id, {"cancel_at_period_end": False})
    synchronisation.sync_subscription(subscription_id=subscription_id, now=double.now())

    with pytest.raises(StaleSnapshot):
        between.apply(cause="late", now=double.now())
    assert not running.subscription.cancels_at_period_end


def test_who_is_never_first_is_told_to_wait_and_the_event_is_kept(
    double: DoubleWorld, running: Payer, amount: int
) -> None:
    (event,) = double.events("customer.subscription.created")
    double.controls.reissue(event.id)
    row = store(body_of(double.events("customer.subscription.created")[-1]), now=double.now())
    amounts = iter(range(amount + 1, amount + 100))

    with meddling() as client:

        def interfere() -> None:
            with client.paused():
                running.upsert(next(amounts))

        client.after["retrieve_subscription"] = interfere
        assert not events.process(event_id=row.pk, now=double.now())
    row.refresh_from_db()
    assert (row.status, row.last_error.split(":")[0]) == ("failed", "billing-in-progress")
    assert Subscription.objects.get().amount_minor == next(amounts) - 1
    assert events.process(event_id=row.pk, now=double.now())
