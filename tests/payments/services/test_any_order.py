"""The order of events does not matter, nor how late or how often one comes: one final state."""

import json
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from decimal import Decimal
from typing import Any

import pytest
from django.conf import settings as django_settings
from django.db import transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from credits.services.reconciliation import find_differences
from payments.amounts import clawback_target
from payments.errors import NoSubscription
from payments.models import Payout, StripeEvent
from payments.services import synchronisation
from payments.stripe import set_billing_client
from rewards.models import Badge
from tests.factories import UserFactory
from tests.fakes.billing import FakeBilling
from tests.payments.mail import body_of, deliver
from tests.payments.people import Payer
from tests.payments.rows import outcome
from tests.payments.worlds import DoubleWorld

pytestmark = pytest.mark.django_db
DAY = 86_400
_property = settings(
    deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=15, database=None
)


@pytest.fixture(autouse=True)
def _badges_that_all_grow_alike(db: None) -> None:
    """How much a payout's experience grows is decided by the badge worn when it is posted, and so by the order."""
    Badge.objects.update(exp_growth_rate=Decimal("1.37"))


@contextmanager
def _forgotten() -> Iterator[None]:
    """Undo every row that the block writes."""
    point = transaction.savepoint()
    try:
        yield
    finally:
        transaction.savepoint_rollback(point)


@pytest.fixture
def month(double: DoubleWorld, payer: Payer, amount: int) -> list[bytes]:
    """What is told of a month and a bit: begun, changed, renewed, refunded in part, disputed, given back, cancelled."""
    payer.upsert(amount)
    first = double.events("invoice.paid")[0].data.object["id"]
    payment = (
        double.v1.invoices.retrieve(first, {"expand": ["payments"]}).payments.data[0].payment.payment_intent
    )
    payer.upsert(amount + 500)
    begun = double.events(*synchronisation.EVENT_TYPES)
    double.pass_time(32 * DAY)
    refund = double.refund(payment, amount // 3)
    double.refund(payment, amount // 4)
    double.fail_refund(refund)
    double.reinstate(double.dispute(payment))
    payer.cancel(immediately=False)
    told = {event.id: body_of(event) for event in [*begun, *double.events(*synchronisation.EVENT_TYPES)]}
    assert len(told) > 12
    return list(told.values())


@pytest.fixture
def in_order(double: DoubleWorld, payer: Payer, month: list[bytes]) -> Any:
    """What the service has after the events in their order."""
    with _forgotten():
        deliver(month, now=double.now())
        assert len(payer.payouts) == 2
        return outcome(), payer.balance


@given(data=st.data())
@_property
def test_every_permutation_with_repeats_ends_alike(
    double: DoubleWorld, payer: Payer, month: list[bytes], in_order: Any, data: st.DataObject
) -> None:
    order = data.draw(st.permutations(range(len(month))))
    repeats = data.draw(st.lists(st.sampled_from(range(len(month))), max_size=4))
    with _forgotten():
        deliver([month[place] for place in [*order, *repeats]], now=double.now())
        assert (outcome(), payer.balance) == in_order
        assert not StripeEvent.objects.exclude(status="processed").exists()
        assert find_differences() == []


Step = Callable[[FakeBilling, Payer, random.Random], Any]


def _payments(payer: Payer) -> list[str]:
    return [payout.stripe_payment_intent_id for payout in payer.payouts]


def _refund(fake: FakeBilling, payer: Payer, dice: random.Random) -> None:
    for payment in _payments(payer)[:1]:
        fake.refund(payment, dice.randint(1, 200))


def _another(fake: FakeBilling, payer: Payer, dice: random.Random) -> None:
    with suppress(NoSubscription):  # It may have ended by itself, as it was told to.
        payer.cancel(immediately=True)
    payer.upsert(3_000)


def _reinstate(fake: FakeBilling, payer: Payer, dice: random.Random) -> None:
    for dispute in list(fake.disputes)[-1:]:
        fake.reinstate(dispute)


STEPS: dict[str, Step] = {
    "change": lambda fake, payer, dice: payer.upsert(dice.randint(1_000, 9_000)),
    "cancel": lambda fake, payer, dice: payer.upsert(5_000, cancels=True),
    "resume": lambda fake, payer, dice: payer.upsert(5_000),
    "another": _another,
    "renew": lambda fake, payer, dice: fake.pass_time(31 * DAY),
    "wait": lambda fake, payer, dice: fake.pass_time(dice.randint(1, 20 * DAY)),
    "refund": _refund,
    "dispute": lambda fake, payer, dice: [fake.dispute(payment) for payment in _payments(payer)[-1:]],
    "reinstate": _reinstate,
}


@given(steps=st.lists(st.sampled_from(sorted(STEPS)), max_size=8), seed=st.integers(0, 2**32))
@settings(_property, max_examples=25)
def test_events_that_come_late_among_newer_ones_end_alike(
    rates: dict[str, int], steps: list[str], seed: int
) -> None:
    dice, fake = random.Random(seed), FakeBilling(webhook_secrets=django_settings.STRIPE_WEBHOOK_SECRETS)
    set_billing_client(fake)
    with _forgotten():
        payer = Payer(fake, UserFactory.create()).with_card()
        payer.upsert(dice.randint(1_000, 9_000))
        heard = 0
        waiting: list[bytes] = []
        for step in steps:
            STEPS[step](fake, payer, dice)
            waiting += fake.events[heard:]
            heard = len(fake.events)
            dice.shuffle(waiting)
            some = dice.randint(0, len(waiting))
            _hand_over(waiting[:some], fake)
            waiting = waiting[some:]
        _hand_over([*waiting, *fake.events[heard:]], fake)
        _assert_true_to(fake, payer)
        before = outcome()
        _hand_over(dice.sample(fake.events, len(fake.events)), fake)
        assert outcome() == before


def _hand_over(bodies: list[bytes], fake: FakeBilling) -> None:
    """Deliver as Stripe does, until each is applied; those it gave twice are known."""
    for body in bodies:
        if not StripeEvent.objects.filter(
            stripe_event_id=json.loads(body)["id"], status="processed"
        ).exists():
            deliver([body], now=fake.now())


def _assert_true_to(fake: FakeBilling, payer: Payer) -> None:
    """The rows follow from what Stripe has now."""
    stored = {row.stripe_subscription_id: row for row in payer.user.subscriptions.all()}
    told = fake.list_subscriptions(customer_id=payer.customer.stripe_customer_id)
    assert {state.subscription_id: (state.status, state.amount_minor, state.ended_at) for state in told} == {
        key: (row.status, row.amount_minor, row.ended_at) for key, row in stored.items()
    }
    paid = {found.invoice_id: found for found in fake.paid_invoices_since(since=payer.user.date_joined)}
    assert {payout.stripe_invoice_id for payout in payer.payouts} == set(paid)
    balance = 0
    for payout in payer.payouts:
        money = fake.returned_money(payment_intent_id=payout.stripe_payment_intent_id)
        gone = clawback_target(
            paid_out=payout.credits,
            collected_minor=payout.amount_minor,
            returned_minor=money.refunded_minor + money.disputed_minor,
        )
        assert sum(step.credits for step in payout.clawbacks.all()) == gone
        balance += payout.credits - gone
    assert payer.balance == balance
    newest = Payout.objects.order_by("-period_start", "-subscription_id").first()
    assert newest is not None
    subscription = newest.subscription
    end = min(newest.period_end, subscription.ended_at or newest.period_end)
    if newest.is_taken_back():
        end = newest.period_start
    allowance = payer.user.allowance
    assert (allowance.credits, allowance.starts_at) == (newest.credits, newest.period_start)
    assert allowance.ends_at == end
    assert allowance.renews == (end == newest.period_end and subscription.renews())
