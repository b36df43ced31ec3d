"""
A process that is killed between a webhook and its payout loses no money and pays none out twice.

One kill of web server and worker meets four people's news, each at another step.
"""

import random
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from tests.journeys.billing import Payer
from tests.journeys.people import Person
from tests.journeys.stack import Stack
from tests.journeys.waiting import side_by_side, until

pytestmark = pytest.mark.journey
PAID = "invoice.paid"
# Each of them alone would lead to the payout.
NEWS = [PAID, "invoice.created", "invoice.finalized", "invoice.updated", "invoice.payment_succeeded"]
# Longer than all the stories take to come to their steps; the kill ends it.
_STUCK_SECONDS = 50

Telling = Generator[None, None, None]
# Up to its first `yield` a story comes to the step at which web server and worker are killed, up to the second one it
# looks at what is left; after that everything runs again.
Story = Callable[[Payer], Telling]


def _paid(stack: Stack, people: list[Person]) -> list[Payer]:
    """Have people pay, which the service has not been told and will not be by itself; it knows everything else."""
    payers = [Payer(person, stack, amount=random.randint(500, 50_000)).with_card() for person in people]
    stack.provider.controls.drop(types=NEWS, count=None, reported_as="delivered")
    assert {payer.upsert().status for payer in payers} == {200}
    for payer in payers:
        payer.hear_all()
        assert payer.records.payouts(payer.profile) == []
    stack.provider.controls.clear_faults()
    return payers


def _processed(payer: Payer, ids: list[str]) -> bool:
    return [event.status for event in payer.records.events(*ids)] == ["processed"] * len(ids)


def _tell(payer: Payer) -> None:
    """Deliver the news."""
    assert payer.double.controls.replay(events=payer.told(PAID)) == 1


def _assert_settled(payer: Payer) -> None:
    payer.assert_settled()
    until("the news is dealt with", lambda: _processed(payer, payer.told(PAID)))
    payer.assert_paid_out_once()


def the_worker_before_it_asked_the_provider(payer: Payer) -> Telling:
    (subscription,) = payer.subscriptions()
    invoice, controls = f"/v1/invoices/{subscription.latest_invoice}", payer.double.controls
    controls.slow(_STUCK_SECONDS, method="GET", path=invoice)
    _tell(payer)
    until("it asks", lambda: None in [request.status for request in controls.requests("GET", invoice)])
    yield
    assert payer.records.payouts(payer.profile) == []
    yield
    _assert_settled(payer)


def the_worker_before_it_wrote_anything(payer: Payer) -> Telling:
    with payer.records.locked_customer(payer.profile) as lock:
        _tell(payer)
        until("the answer waits to be written", lambda: lock.is_waited_for)
        yield
    assert not _processed(payer, payer.told(PAID))
    yield
    _assert_settled(payer)


def the_worker_between_its_rows(payer: Payer) -> Telling:
    with payer.records.unwritable("credits_allowance") as lock:
        _tell(payer)
        until("the row waits", lambda: lock.is_waited_for)
        yield
    assert payer.records.paid_out(payer.profile) == []
    assert payer.records.account(payer.profile).balance == payer.opening_balance
    yield
    _assert_settled(payer)


def the_web_process_before_it_said_thanks(payer: Payer) -> Telling:
    # After its commit the request tells the broker, which stands still: this is the moment to kill it in.
    news = payer.told(PAID)
    with payer.stack.frozen(payer.stack.redis):
        _tell(payer)
        until("the news is stored", lambda: payer.records.events(*news))
        yield
    assert payer.double.controls.deliveries("pending")
    yield
    _assert_settled(payer)
    until("the second delivery is taken", lambda: not payer.double.controls.deliveries("pending"))
    payer.assert_paid_out_once()


AT_THE_PROVIDER = the_worker_before_it_asked_the_provider
AT_THE_DATABASE: list[Story] = [the_worker_before_it_wrote_anything, the_worker_between_its_rows]
AT_THE_BROKER = the_web_process_before_it_said_thanks
STORIES: list[Story] = [AT_THE_PROVIDER, *AT_THE_DATABASE, AT_THE_BROKER]


@pytest.fixture(scope="module")
def told(started_stack: Stack) -> Iterator[dict[Story, Telling]]:
    """Tell every story up to where everything runs again."""
    stack = started_stack
    payers = _paid(stack, stack.newcomers(len(STORIES)))
    told = {story: story(payer) for story, payer in zip(STORIES, payers, strict=True)}
    next(told[AT_THE_PROVIDER])
    # At last what the broker keeps waiting, because nobody waits for it longer than a few seconds.
    side_by_side([partial(next, told[story]) for story in AT_THE_DATABASE], threads=2)
    next(told[AT_THE_BROKER])
    stack.kill(stack.web)
    stack.kill(stack.worker)
    for telling in told.values():
        next(telling)
    stack.restart(stack.web, stack.worker)
    yield told
    stack.mend()


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
def test_the_payout_outlives_a_kill_of(told: dict[Story, Telling], story: Story) -> None:
    assert list(told[story]) == []


def test_a_month_without_news_outlives_the_clock_that_was_killed_while_it_paid_out(
    stack: Stack, person: Person
) -> None:
    (payer,) = _paid(stack, [person])
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
    _tell(payer)
    _assert_settled(payer)
