"""A process that dies in the middle: the next one finishes its command with the same key."""

import random
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import timedelta

import pytest

from payments.errors import BillingInProgress
from payments.models import BillingOperation, Subscription
from payments.services import operations
from tests.payments.faults import killed_after, killed_before
from tests.payments.payers import Payer
from tests.payments.services.commands import (
    AMOUNT,
    CANCEL,
    COMMANDS,
    CREATE,
    CREATE_CUSTOMER,
    UPDATE,
    Command,
    assert_executed_once,
    keys_used,
    prepared,
)
from tests.payments.stripe_accounts import NEEDS_CONFIRMATION, DoubleAccount
from tests.payments.webhook_events import process_all_events
from users.models import User

pytestmark = pytest.mark.django_db
AFTER = operations.ABANDONED_AFTER + timedelta(seconds=1)
each_command = pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.kind)


@each_command
def test_the_sweep_finishes_a_command_killed_after_stripes_response_with_its_key(
    double: DoubleAccount, user: User, command: Command
) -> None:
    payer = prepared(command, double, user)
    with killed_after(command.method):
        command.send(payer)
    begun = BillingOperation.objects.get(status="pending")
    assert operations.resume_abandoned(now=double.now() + AFTER) == 1
    assert_executed_once(command, double, payer)
    assert keys_used(command, double) == ({None} if command is CANCEL else {str(begun.pk)})
    assert BillingOperation.objects.get(pk=begun.pk).attempts == 1


@each_command
def test_the_sweep_sends_a_command_killed_before_it_was_sent(
    double: DoubleAccount, user: User, command: Command
) -> None:
    payer = prepared(command, double, user)
    with killed_before(command.method):
        command.send(payer)
    assert operations.resume_abandoned(now=double.now() + AFTER) == 1
    assert_executed_once(command, double, payer)


@each_command
def test_the_users_next_request_finishes_an_abandoned_command(
    double: DoubleAccount, user: User, command: Command
) -> None:
    payer = prepared(command, double, user)
    with killed_after(command.method):
        command.send(payer)
    if command is CANCEL:
        # It reads that the subscription has ended; the operation is the sweep's.
        assert payer.cancel(immediately=True).status == "canceled"
        operations.resume_abandoned(now=double.now() + AFTER)
    else:
        command.send(payer)
        operations.resume_abandoned(now=double.now() + AFTER)
    assert not BillingOperation.objects.filter(status="pending").exists()
    assert len(double.v1.customers.list().data) == 1
    assert len(double.v1.subscriptions.list({"status": "all"}).data) == (
        0 if command is CREATE_CUSTOMER else 1
    )


@pytest.mark.parametrize(
    ("killed", "command"),
    [(killed_before, CREATE), (killed_after, CREATE), (killed_after, UPDATE), (killed_after, CANCEL)],
)
def test_another_change_finishes_a_crashed_one_and_succeeds_on_retry(
    double: DoubleAccount, user: User, command: Command, killed: Callable[[str], AbstractContextManager[None]]
) -> None:
    payer, wanted = prepared(command, double, user), AMOUNT + random.randint(1, 99)
    with killed(command.method):
        command.send(payer)
    process_all_events(double)
    begun = BillingOperation.objects.get(status="pending")

    with pytest.raises(BillingInProgress):
        payer.upsert(wanted)
    assert BillingOperation.objects.get(status="pending").attempts == 0
    double.pass_time(AFTER.seconds)
    with pytest.raises(BillingInProgress):
        payer.upsert(wanted)

    begun.refresh_from_db()
    assert (begun.status, begun.attempts) == ("done", 1)
    assert payer.upsert(wanted).amount_minor == wanted
    assert not BillingOperation.objects.filter(status="pending").exists()
    assert len(double.v1.subscriptions.list({"status": "active"}).data) == 1


def test_a_pending_operation_that_is_not_abandoned_is_not_resumed(double: DoubleAccount, user: User) -> None:
    payer = prepared(CREATE, double, user)
    with killed_before(CREATE.method):
        payer.upsert(AMOUNT)
    with double.frozen_log() as requests:
        assert operations.resume_abandoned(now=double.now() + operations.ABANDONED_AFTER / 2) == 0
    assert requests == []
    assert BillingOperation.objects.get(status="pending").attempts == 0


def test_a_second_sweep_changes_nothing(double: DoubleAccount, user: User) -> None:
    payer = prepared(CREATE, double, user)
    with killed_after(CREATE.method):
        payer.upsert(AMOUNT)
    assert [operations.resume_abandoned(now=double.now() + AFTER) for _ in range(2)] == [1, 0]
    assert_executed_once(CREATE, double, payer)


def test_a_replayed_first_response_does_not_undo_later_changes(double: DoubleAccount, user: User) -> None:
    """Stripe responds to the key as it did the first time: `incomplete`. The holder has confirmed since."""
    payer = Payer(double, user).with_card(NEEDS_CONFIRMATION)
    with killed_after(CREATE.method):
        payer.upsert(AMOUNT)
    (subscription,) = double.v1.subscriptions.list({"status": "all"}).data
    payments = double.v1.invoices.retrieve(subscription.latest_invoice, {"expand": ["payments"]}).payments
    double.controls.authenticate(payments.data[0].payment.payment_intent)
    process_all_events(double)
    assert Subscription.objects.get().status == "active"
    operations.resume_abandoned(now=double.now() + AFTER)
    assert Subscription.objects.get().status == "active"
    assert BillingOperation.objects.get(kind=CREATE.kind).status == "done"


@pytest.mark.parametrize("command", [CREATE, UPDATE, CANCEL], ids=lambda command: command.kind)
def test_an_expired_idempotency_key_is_not_used_again(
    double: DoubleAccount, user: User, command: Command
) -> None:
    payer = prepared(command, double, user)
    with killed_after(command.method):
        command.send(payer)
    begun = BillingOperation.objects.get(status="pending")
    double.pass_time(25 * 3600)
    with double.frozen_log() as requests:
        assert operations.resume_abandoned(now=double.now()) == 1
    assert requests == []
    begun.refresh_from_db()
    assert (begun.status, begun.outcome) == ("refused", "abandoned")
    (subscription,) = double.v1.subscriptions.list({"status": "all"}).data
    stored = Subscription.objects.get()
    assert (stored.stripe_subscription_id, stored.status) == (subscription.id, subscription.status)
    command.send(payer) if command is not CANCEL else payer.upsert(AMOUNT)
    expected = 2 if command is CANCEL else 1
    assert len(double.v1.subscriptions.list({"status": "all"}).data) == expected


def test_an_expired_idempotency_key_is_not_used_by_a_request_before_the_sweep(
    double: DoubleAccount, user: User
) -> None:
    """Without beat a day long, a repeat would have Stripe carry out the command a second time."""
    payer = prepared(CREATE, double, user)
    with killed_after(CREATE.method):
        payer.upsert(AMOUNT)
    double.pass_time(25 * 3600)
    found = payer.upsert(AMOUNT)  # Stripe lists what the lost command made.
    assert found.stripe_subscription_id == double.v1.subscriptions.list().data[0].id
    with pytest.raises(Exception, match="in progress"):
        payer.upsert(2 * AMOUNT)
    assert len(double.v1.subscriptions.list({"status": "all"}).data) == 1
    operations.resume_abandoned(now=double.now())
    assert payer.upsert(AMOUNT) == Subscription.objects.get()
    assert len(double.v1.subscriptions.list({"status": "all"}).data) == 1


def test_a_customer_whose_key_expired_is_created_by_the_next_request(
    double: DoubleAccount, user: User
) -> None:
    payer = prepared(CREATE_CUSTOMER, double, user)
    with killed_before(CREATE_CUSTOMER.method):
        assert payer.customer
    double.pass_time(25 * 3600)
    assert operations.resume_abandoned(now=double.now()) == 1
    assert payer.customer.stripe_customer_id.startswith("cus_")
    assert len(double.v1.customers.list().data) == 1
