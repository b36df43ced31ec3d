"""A process that dies on the way: whoever comes next finishes what it began, with the same key."""

from datetime import timedelta

import pytest

from payments.models import BillingOperation, Subscription
from payments.services import operations
from tests.payments.mail import deliver_all
from tests.payments.meddling import killed_after, killed_before
from tests.payments.people import Payer
from tests.payments.services.orders import (
    AMOUNT,
    CANCEL,
    CREATE,
    CREATE_CUSTOMER,
    ORDERS,
    UPDATE,
    Order,
    assert_carried_out_once,
    keys_used,
    prepared,
)
from tests.payments.worlds import ASKS, DoubleWorld
from users.models import User

pytestmark = pytest.mark.django_db
AFTER = operations.ABANDONED_AFTER + timedelta(seconds=1)
each_order = pytest.mark.parametrize("order", ORDERS, ids=lambda order: order.kind)


@each_order
def test_killed_after_stripes_answer_the_sweep_finishes_it_with_the_same_key(
    double: DoubleWorld, user: User, order: Order
) -> None:
    payer = prepared(order, double, user)
    with killed_after(order.method):
        order.ask(payer)
    begun = BillingOperation.objects.get(status="pending")
    assert operations.resume_abandoned(now=double.now() + AFTER) == 1
    assert_carried_out_once(order, double, payer)
    assert keys_used(order, double) == ({None} if order is CANCEL else {str(begun.pk)})
    assert BillingOperation.objects.get(pk=begun.pk).attempts == 1


@each_order
def test_killed_before_stripe_was_asked_the_sweep_asks(double: DoubleWorld, user: User, order: Order) -> None:
    payer = prepared(order, double, user)
    with killed_before(order.method):
        order.ask(payer)
    assert operations.resume_abandoned(now=double.now() + AFTER) == 1
    assert_carried_out_once(order, double, payer)


@each_order
def test_the_users_next_request_finishes_it_at_once(double: DoubleWorld, user: User, order: Order) -> None:
    payer = prepared(order, double, user)
    with killed_after(order.method):
        order.ask(payer)
    if order is CANCEL:
        # It reads that the subscription has ended; the operation is the sweep's.
        assert payer.cancel(immediately=True).status == "canceled"
        operations.resume_abandoned(now=double.now() + AFTER)
    else:
        order.ask(payer)
        operations.resume_abandoned(now=double.now() + AFTER)
    assert not BillingOperation.objects.filter(status="pending").exists()
    assert len(double.v1.customers.list().data) == 1
    assert len(double.v1.subscriptions.list({"status": "all"}).data) == (0 if order is CREATE_CUSTOMER else 1)


def test_what_is_not_abandoned_yet_is_left_to_its_process(double: DoubleWorld, user: User) -> None:
    payer = prepared(CREATE, double, user)
    with killed_before(CREATE.method):
        payer.upsert(AMOUNT)
    with double.frozen_log() as requests:
        assert operations.resume_abandoned(now=double.now() + operations.ABANDONED_AFTER / 2) == 0
    assert requests == []
    assert BillingOperation.objects.get(status="pending").attempts == 0


def test_the_sweep_twice_does_nothing_more(double: DoubleWorld, user: User) -> None:
    payer = prepared(CREATE, double, user)
    with killed_after(CREATE.method):
        payer.upsert(AMOUNT)
    assert [operations.resume_abandoned(now=double.now() + AFTER) for _ in range(2)] == [1, 0]
    assert_carried_out_once(CREATE, double, payer)


def test_what_changed_since_the_first_answer_is_not_undone_by_it(double: DoubleWorld, user: User) -> None:
    """Stripe answers the key as it did the first time: `incomplete`. The holder has confirmed since."""
    payer = Payer(double, user).with_card(ASKS)
    with killed_after(CREATE.method):
        payer.upsert(AMOUNT)
    (told,) = double.v1.subscriptions.list({"status": "all"}).data
    payments = double.v1.invoices.retrieve(told.latest_invoice, {"expand": ["payments"]}).payments
    double.controls.authenticate(payments.data[0].payment.payment_intent)
    deliver_all(double)
    assert Subscription.objects.get().status == "active"
    operations.resume_abandoned(now=double.now() + AFTER)
    assert Subscription.objects.get().status == "active"
    assert BillingOperation.objects.get(kind=CREATE.kind).status == "done"


@pytest.mark.parametrize("order", [CREATE, UPDATE, CANCEL], ids=lambda order: order.kind)
def test_a_key_that_stripe_may_have_forgotten_is_not_used_again(
    double: DoubleWorld, user: User, order: Order
) -> None:
    payer = prepared(order, double, user)
    with killed_after(order.method):
        order.ask(payer)
    begun = BillingOperation.objects.get(status="pending")
    double.pass_time(25 * 3600)
    with double.frozen_log() as requests:
        assert operations.resume_abandoned(now=double.now()) == 1
    assert requests == []
    begun.refresh_from_db()
    assert (begun.status, begun.outcome) == ("refused", "abandoned")
    (told,) = double.v1.subscriptions.list({"status": "all"}).data
    stored = Subscription.objects.get()
    assert (stored.stripe_subscription_id, stored.status) == (told.id, told.status)
    order.ask(payer) if order is not CANCEL else payer.upsert(AMOUNT)
    expected = 2 if order is CANCEL else 1
    assert len(double.v1.subscriptions.list({"status": "all"}).data) == expected


def test_neither_by_a_request_that_comes_before_the_sweep(double: DoubleWorld, user: User) -> None:
    """Without beat a day long, a repeat would have Stripe carry out the order a second time."""
    payer = prepared(CREATE, double, user)
    with killed_after(CREATE.method):
        payer.upsert(AMOUNT)
    double.pass_time(25 * 3600)
    with pytest.raises(Exception, match="under way"):
        payer.upsert(AMOUNT)
    assert len(double.v1.subscriptions.list({"status": "all"}).data) == 1
    operations.resume_abandoned(now=double.now())
    assert payer.upsert(AMOUNT) == Subscription.objects.get()
    assert len(double.v1.subscriptions.list({"status": "all"}).data) == 1


def test_a_forgotten_customer_is_made_anew(double: DoubleWorld, user: User) -> None:
    payer = prepared(CREATE_CUSTOMER, double, user)
    with killed_before(CREATE_CUSTOMER.method):
        assert payer.customer
    double.pass_time(25 * 3600)
    assert operations.resume_abandoned(now=double.now()) == 1
    assert payer.customer.stripe_customer_id.startswith("cus_")
    assert len(double.v1.customers.list().data) == 1
