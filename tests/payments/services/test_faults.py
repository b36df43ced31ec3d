"""Stripe fails, before or after it has done what was asked: a clear 503 or the right answer, never twice the money."""

import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from devstack.services.server import free_port
from payments.errors import BillingInProgress, BillingUnavailable
from payments.models import BillingOperation, StripeEvent, Subscription
from payments.services import operations
from payments.stripe import set_billing_client
from tests.payments.people import Payer
from tests.payments.services.orders import (
    AMOUNT,
    CANCEL,
    CREATE,
    ORDERS,
    Order,
    assert_carried_out_once,
    keys_used,
    prepared,
)
from tests.payments.worlds import DoubleWorld
from users.models import User

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("impatient")]
AFTER = operations.ABANDONED_AFTER + timedelta(seconds=1)
each_order = pytest.mark.parametrize("order", ORDERS, ids=lambda order: order.kind)
Fault = Callable[..., None]


def _faults(double: DoubleWorld) -> dict[str, Fault]:
    controls = double.controls
    return {
        "409": lambda **where: controls.fail(409, **where),
        "429": lambda **where: controls.fail(429, **where),
        "500": lambda **where: controls.fail(500, **where),
        "error after commit": controls.error_after_commit,
        "timeout after commit": lambda **where: controls.timeout_after_commit(0, **where),
    }


def _disturb(double: DoubleWorld, order: Order, fault: str, count: int | None) -> None:
    _faults(double)[fault](method=order.http, path=order.path, count=count)


@each_order
@pytest.mark.parametrize("fault", ["409", "500", "error after commit", "timeout after commit"])
def test_one_fault_is_got_over_within_the_request(
    double: DoubleWorld, user: User, order: Order, fault: str
) -> None:
    payer = prepared(order, double, user)
    _disturb(double, order, fault, 1)
    order.ask(payer)
    assert_carried_out_once(order, double, payer)
    assert len(keys_used(order, double)) == 1


def test_two_faults_in_a_row_are_got_over_within_the_request(double: DoubleWorld, user: User) -> None:
    payer = prepared(CREATE, double, user)
    _disturb(double, CREATE, "500", 2)
    CREATE.ask(payer)
    assert_carried_out_once(CREATE, double, payer)
    assert len(keys_used(CREATE, double)) == 1
    assert len(double.posts(CREATE.path)) == 3


@each_order
@pytest.mark.parametrize("fault", ["409", "429", "500", "error after commit", "timeout after commit"])
def test_a_fault_that_lasts_is_told_or_seen_through_and_a_repeat_is_right(
    double: DoubleWorld, user: User, order: Order, fault: str
) -> None:
    payer = prepared(order, double, user)
    _disturb(double, order, fault, None)
    try:
        order.ask(payer)
    except BillingUnavailable as refusal:
        assert refusal.retry_after  # noqa: PT017
    double.controls.clear_faults()
    if order is CANCEL and payer.subscription.ended_at is not None:
        return
    order.ask(payer)
    operations.resume_abandoned(now=double.now() + AFTER)
    assert_carried_out_once(order, double, payer)


@each_order
@pytest.mark.parametrize("fault", ["429", "500"])
def test_or_the_sweep_finishes_it(double: DoubleWorld, user: User, order: Order, fault: str) -> None:
    payer = prepared(order, double, user)
    _disturb(double, order, fault, None)
    with pytest.raises(BillingUnavailable):
        order.ask(payer)
    assert BillingOperation.objects.filter(status="pending").count() == 1
    assert operations.resume_abandoned(now=double.now() + AFTER) == 0
    double.controls.clear_faults()
    assert operations.resume_abandoned(now=double.now() + AFTER) == 1
    assert_carried_out_once(order, double, payer)


@pytest.mark.parametrize("order", ORDERS[:3], ids=lambda order: order.kind)
def test_an_error_that_stripe_keeps_for_the_key_hides_what_was_made_from_nobody(
    double: DoubleWorld, user: User, order: Order
) -> None:
    payer = prepared(order, double, user)
    double.controls.error_after_commit(method="POST", path=order.path, saved=True)
    order.ask(payer)
    assert_carried_out_once(order, double, payer)


@pytest.mark.parametrize("order", ORDERS[:3], ids=lambda order: order.kind)
def test_an_error_that_stripe_keeps_although_nothing_was_made_is_asked_under_a_derived_key(
    double: DoubleWorld, user: User, order: Order
) -> None:
    payer = prepared(order, double, user)
    double.controls.fail(500, method="POST", path=order.path, saved=True)
    order.ask(payer)
    assert_carried_out_once(order, double, payer)
    key = str(BillingOperation.objects.get(kind=order.kind).pk)
    assert keys_used(order, double) == {key, f"{key}:1"}


def test_a_kept_error_met_by_a_process_that_dies_is_overcome_by_the_next(
    double: DoubleWorld, user: User
) -> None:
    payer = prepared(CREATE, double, user)
    double.controls.error_after_commit(method="POST", path=CREATE.path, saved=True)
    double.controls.fail(500, method="GET", path="/v1/subscriptions", count=None)
    with pytest.raises(BillingUnavailable):
        payer.upsert(AMOUNT)
    double.controls.clear_faults()
    operations.resume_abandoned(now=double.now() + AFTER)
    assert_carried_out_once(CREATE, double, payer)


def test_stripe_away_is_told_and_nothing_else_happens(
    double: DoubleWorld, payer: Payer, settings: Any
) -> None:
    settings.STRIPE_API_BASE = f"http://127.0.0.1:{free_port()}"
    set_billing_client(None)
    with pytest.raises(BillingUnavailable) as refusal:
        payer.upsert(AMOUNT)
    assert refusal.value.retry_after
    assert not Subscription.objects.exists()
    assert not BillingOperation.objects.filter(kind="create-subscription").exists()
    assert not StripeEvent.objects.exists()


def test_stripe_slower_than_our_patience_is_told_and_done_once(
    double: DoubleWorld, payer: Payer, settings: Any
) -> None:
    settings.STRIPE_TIMEOUT_SECONDS = 1
    set_billing_client(None)
    double.controls.slow(1.5, method="POST", path=CREATE.path)
    with pytest.raises(BillingUnavailable):
        payer.upsert(AMOUNT)
    deadline = time.monotonic() + 60
    while not operations.resume_abandoned(now=double.now() + AFTER):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert_carried_out_once(CREATE, double, payer)


def test_while_an_unfinished_change_waits_another_one_is_told_to(double: DoubleWorld, user: User) -> None:
    payer = prepared(CREATE, double, user)
    _disturb(double, CREATE, "500", None)
    with pytest.raises(BillingUnavailable):
        payer.upsert(AMOUNT)
    double.controls.clear_faults()
    with pytest.raises(BillingInProgress):
        payer.upsert(2 * AMOUNT)
    operations.resume_abandoned(now=double.now() + AFTER)
    assert payer.upsert(2 * AMOUNT).amount_minor == 2 * AMOUNT
    assert len(double.v1.subscriptions.list({"status": "all"}).data) == 1


def test_a_broken_key_of_ours_is_no_fault_of_the_caller(
    double: DoubleWorld, payer: Payer, settings: Any
) -> None:
    settings.STRIPE_SECRET_KEY = "sk_test_of_somebody_else"
    set_billing_client(None)
    with pytest.raises(BillingUnavailable):
        payer.upsert(AMOUNT)


def test_without_a_key_payments_are_off(double: DoubleWorld, payer: Payer, settings: Any) -> None:
    settings.STRIPE_SECRET_KEY = ""
    set_billing_client(None)
    with pytest.raises(BillingUnavailable) as refusal:
        payer.upsert(AMOUNT)
    assert refusal.value.retry_after == 3600
