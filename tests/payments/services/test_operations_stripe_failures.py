"""Stripe fails before or after it has executed a command: a clear 503 or the right response, never two charges."""

import time
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from devstack.ports import free_port
from payments.errors import BillingInProgress, BillingUnavailable
from payments.models import BillingOperation, StripeEvent, Subscription
from payments.services import operations
from payments.stripe import set_billing_client
from tests.payments.faults import fault_injection
from tests.payments.payers import Payer
from tests.payments.services.commands import (
    AMOUNT,
    CANCEL,
    COMMANDS,
    CREATE,
    Command,
    assert_executed_once,
    keys_used,
    prepared,
)
from tests.payments.stripe_accounts import DoubleAccount
from users.models import User

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("impatient")]
AFTER = operations.ABANDONED_AFTER + timedelta(seconds=1)
each_command = pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.kind)
Fault = Callable[..., None]


def _faults(double: DoubleAccount) -> dict[str, Fault]:
    controls = double.controls
    return {
        "409": lambda **where: controls.fail(409, **where),
        "500": lambda **where: controls.fail(500, **where),
        "error after commit": controls.error_after_commit,
        "timeout after commit": lambda **where: controls.timeout_after_commit(0, **where),
    }


def _disturb(double: DoubleAccount, command: Command, fault: str, count: int | None) -> None:
    _faults(double)[fault](method=command.http, path=command.path, count=count)


@pytest.mark.parametrize(
    ("command", "fault"),
    [
        *((command, "error after commit") for command in COMMANDS),
        *((CREATE, fault) for fault in ("409", "500", "timeout after commit")),
    ],
)
def test_one_failure_is_retried_within_the_request(
    double: DoubleAccount, user: User, command: Command, fault: str
) -> None:
    payer = prepared(command, double, user)
    _disturb(double, command, fault, 1)
    command.send(payer)
    assert_executed_once(command, double, payer)
    assert len(keys_used(command, double)) == 1


def test_two_failures_in_a_row_are_retried_within_the_request(double: DoubleAccount, user: User) -> None:
    payer = prepared(CREATE, double, user)
    _disturb(double, CREATE, "500", 2)
    CREATE.send(payer)
    assert_executed_once(CREATE, double, payer)
    assert len(keys_used(CREATE, double)) == 1
    assert len(double.posts(CREATE.path)) == 3


@each_command
def test_a_lasting_failure_is_reported_or_resolved_and_a_repeat_succeeds(
    double: DoubleAccount, user: User, command: Command
) -> None:
    payer = prepared(command, double, user)
    _disturb(double, command, "error after commit", None)
    try:
        command.send(payer)
    except BillingUnavailable as refusal:
        assert refusal.retry_after  # noqa: PT017
    double.controls.clear_faults()
    if command is CANCEL and payer.subscription.ended_at is not None:
        return
    command.send(payer)
    operations.resume_abandoned(now=double.now() + AFTER)
    assert_executed_once(command, double, payer)


@each_command
def test_the_sweep_finishes_a_command_after_a_lasting_failure(
    double: DoubleAccount, user: User, command: Command
) -> None:
    payer = prepared(command, double, user)
    _disturb(double, command, "500", None)
    with pytest.raises(BillingUnavailable):
        command.send(payer)
    assert BillingOperation.objects.filter(status="pending").count() == 1
    assert operations.resume_abandoned(now=double.now() + AFTER) == 0
    double.controls.clear_faults()
    assert operations.resume_abandoned(now=double.now() + AFTER) == 1
    assert_executed_once(command, double, payer)


@pytest.mark.parametrize("command", COMMANDS[:3], ids=lambda command: command.kind)
def test_a_command_is_found_although_stripe_replays_an_error_for_its_key(
    double: DoubleAccount, user: User, command: Command
) -> None:
    payer = prepared(command, double, user)
    double.controls.error_after_commit(method="POST", path=command.path, saved=True)
    command.send(payer)
    assert_executed_once(command, double, payer)


@pytest.mark.parametrize("command", COMMANDS[:3], ids=lambda command: command.kind)
def test_a_command_without_effect_is_resent_under_a_derived_key_if_stripe_replays_an_error(
    double: DoubleAccount, user: User, command: Command
) -> None:
    payer = prepared(command, double, user)
    double.controls.fail(500, method="POST", path=command.path, saved=True)
    command.send(payer)
    assert_executed_once(command, double, payer)
    key = str(BillingOperation.objects.get(kind=command.kind).pk)
    assert keys_used(command, double) == {key, f"{key}:1"}


def test_a_replayed_error_is_resolved_by_the_next_process_after_a_crash(
    double: DoubleAccount, user: User
) -> None:
    payer = prepared(CREATE, double, user)
    double.controls.error_after_commit(method="POST", path=CREATE.path, saved=True)
    with fault_injection() as client:
        client.before[CREATE.method] = partial(
            double.controls.fail, 500, method="GET", path="/v1/subscriptions", count=None
        )
        with pytest.raises(BillingUnavailable):
            payer.upsert(AMOUNT)
    double.controls.clear_faults()
    operations.resume_abandoned(now=double.now() + AFTER)
    assert_executed_once(CREATE, double, payer)


def test_an_unreachable_stripe_is_reported_and_nothing_else_happens(
    double: DoubleAccount, payer: Payer, settings: Any
) -> None:
    settings.STRIPE_API_BASE = f"http://127.0.0.1:{free_port()}"
    set_billing_client(None)
    with pytest.raises(BillingUnavailable) as refusal:
        payer.upsert(AMOUNT)
    assert refusal.value.retry_after
    assert not Subscription.objects.exists()
    assert not BillingOperation.objects.filter(kind="create-subscription").exists()
    assert not StripeEvent.objects.exists()


def test_a_timeout_is_reported_and_the_command_is_executed_once(
    double: DoubleAccount, payer: Payer, settings: Any
) -> None:
    settings.STRIPE_TIMEOUT_SECONDS = 3
    set_billing_client(None)
    double.controls.slow(4.5, method="POST", path=CREATE.path)
    with pytest.raises(BillingUnavailable):
        payer.upsert(AMOUNT)
    deadline = time.monotonic() + 300
    while not operations.resume_abandoned(now=double.now() + AFTER):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert_executed_once(CREATE, double, payer)


def test_while_a_change_is_unfinished_another_one_gets_409(double: DoubleAccount, user: User) -> None:
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


def test_an_invalid_api_key_returns_unavailable(double: DoubleAccount, payer: Payer, settings: Any) -> None:
    settings.STRIPE_SECRET_KEY = "sk_test_of_somebody_else"
    set_billing_client(None)
    with pytest.raises(BillingUnavailable):
        payer.upsert(AMOUNT)


def test_without_an_api_key_payments_are_unavailable(
    double: DoubleAccount, payer: Payer, settings: Any
) -> None:
    settings.STRIPE_SECRET_KEY = ""
    set_billing_client(None)
    with pytest.raises(BillingUnavailable) as refusal:
        payer.upsert(AMOUNT)
    assert refusal.value.retry_after == 3600
