"""A process that is killed between a webhook and its payout loses no money and pays none out twice."""

import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from tests.journeys.billing import Payer
from tests.journeys.billing_records import BillingRecords
from tests.journeys.people import Person
from tests.journeys.stack import Stack, thaw
from tests.journeys.waiting import until

pytestmark = pytest.mark.journey
PAID = "invoice.paid"
# Each of them alone would lead to the payout.
LOST = ["invoice.created", "invoice.finalized", "invoice.updated", "invoice.payment_succeeded"]


@pytest.fixture
def records(stack: Stack) -> BillingRecords:
    """The rows of payments."""
    return BillingRecords(stack.services.database_url)


@pytest.fixture
def payer(stack: Stack, person: Person) -> Payer:
    """Somebody who has just paid, which the service has not been told yet; it knows everything else."""
    payer = Payer(person, stack, amount=random.randint(500, 50_000)).with_card()
    stack.provider.controls.drop(types=LOST, count=None, reported_as="delivered")
    stack.provider.controls.hold(types=[PAID])
    assert payer.upsert().status == 200
    others = [*payer.told("customer.subscription.created"), *payer.told("customer.subscription.updated")]
    until("the rest is known", lambda: _processed(payer, others))
    assert payer.records.payouts(payer.profile) == []
    return payer


def _processed(payer: Payer, ids: list[str]) -> bool:
    return [event.status for event in payer.records.events(*ids)] == ["processed"] * len(ids)


def _is_told(payer: Payer) -> bool:
    return bool(payer.records.events(*payer.told(PAID)))


@contextmanager
def _told_to_a_frozen_worker(stack: Stack, payer: Payer) -> Iterator[None]:
    """Deliver the news within the block, in which the worker stands still unless it is thawed."""
    with stack.frozen(stack.worker):
        stack.provider.controls.release()
        until("the news is stored", lambda: _is_told(payer))
        yield


def _assert_settled(payer: Payer) -> None:
    payer.assert_settled()
    until("the news is dealt with", lambda: _processed(payer, payer.told(PAID)))
    payer.assert_paid_out_once()


def test_the_news_outlives_the_web_process_that_was_killed_before_it_said_thanks(
    stack: Stack, payer: Payer
) -> None:
    # After its commit the request tells the broker, which stands still: this is the moment to kill it in.
    with stack.frozen(stack.redis):
        stack.provider.controls.release()
        until("the news is stored", lambda: _is_told(payer))
        stack.kill(stack.web)
    assert stack.provider.controls.deliveries("pending")

    stack.restart(stack.web)

    _assert_settled(payer)
    until("the second delivery is taken", lambda: not stack.provider.controls.deliveries("pending"))
    payer.assert_paid_out_once()


def test_the_payout_outlives_the_worker_that_was_killed_before_it_asked_the_provider(
    stack: Stack, payer: Payer
) -> None:
    with _told_to_a_frozen_worker(stack, payer):
        received = stack.tasks_heard("payments.process_event")
        with stack.frozen(stack.provider):
            thaw(stack.worker)
            until(
                "the worker has the message", lambda: stack.tasks_heard("payments.process_event") > received
            )
            stack.kill(stack.worker)
    assert payer.records.payouts(payer.profile) == []

    stack.restart(stack.worker)

    _assert_settled(payer)


def test_the_payout_outlives_the_worker_that_was_killed_before_it_wrote_anything(
    stack: Stack, payer: Payer
) -> None:
    with payer.records.locked_customer(payer.profile) as lock:
        stack.provider.controls.release()
        until("the answer waits to be written", lambda: lock.is_waited_for)
        stack.kill(stack.worker)
    assert not _processed(payer, payer.told(PAID))

    stack.restart(stack.worker)

    _assert_settled(payer)


@pytest.mark.parametrize("table", ["payments_payout", "credits_allowance"])
def test_the_payout_outlives_the_worker_that_was_killed_between_its_rows(
    stack: Stack, payer: Payer, table: str
) -> None:
    with payer.records.unwritable(table) as lock:
        stack.provider.controls.release()
        until("the row waits", lambda: lock.is_waited_for)
        stack.kill(stack.worker)
    assert payer.records.paid_out(payer.profile) == []
    assert payer.records.account(payer.profile).balance == payer.opening_balance

    stack.restart(stack.worker)

    _assert_settled(payer)


def test_a_month_without_news_outlives_the_clock_that_was_killed_while_it_paid_out(
    stack: Stack, payer: Payer
) -> None:
    stack.provider.controls.drop(types=[PAID], reported_as="delivered")
    stack.provider.controls.release()
    with payer.records.unwritable("payments_payout") as lock, ThreadPoolExecutor(1) as clock:
        clock.submit(stack.enqueue, "payments.catch_up")
        until("the row waits", lambda: lock.is_waited_for)
        stack.kill(stack.worker)
    assert payer.records.paid_out(payer.profile) == []

    stack.restart(stack.worker)
    stack.enqueue("payments.catch_up")
    stack.enqueue("payments.catch_up")

    payer.assert_paid_out_once()
    assert payer.records.events(*payer.told(PAID)) == []
    assert stack.provider.controls.replay(types=[PAID]) > 0
    _assert_settled(payer)
