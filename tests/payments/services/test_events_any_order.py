"""
Events may come in any order, late or repeatedly: the final rows are the same.

Each run tries a few new orders; EVENT_ORDERS sets another number.
"""

import json
import os
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from django.conf import settings as django_settings
from django.db import transaction
from hypothesis import given, settings
from hypothesis import strategies as st

from credits.services.reconciliation import find_differences
from payments.amounts import clawback_target
from payments.errors import NoSubscription
from payments.models import StripeEvent
from payments.services.snapshots import EVENT_TYPES
from payments.stripe import set_billing_client
from rewards.models import Badge
from tests.factories import UserFactory
from tests.fakes.billing import FakeBilling
from tests.payments.payers import Payer
from tests.payments.rows import final_rows
from tests.payments.webhook_events import process_events
from users.models import User

pytestmark = pytest.mark.django_db
DAY = 86_400
_BEFORE_ALL = datetime.fromtimestamp(0, UTC)
_ORDERS = int(os.environ.get("EVENT_ORDERS", "5"))
_property = settings(max_examples=_ORDERS, database=None)


@pytest.fixture(autouse=True)
def _badges_that_all_grow_alike(db: None) -> None:
    """Make all badges grow alike: otherwise the badge at posting, and so the order, decides the experience."""
    Badge.objects.update(exp_growth_rate=Decimal("1.37"))


@contextmanager
def _rolled_back() -> Iterator[None]:
    """Roll back every row that the block writes."""
    point = transaction.savepoint()
    try:
        yield
    finally:
        transaction.savepoint_rollback(point)


@pytest.fixture
def payer(fake: FakeBilling, user: User) -> Payer:
    """A user with a card."""
    return Payer(fake, user).with_card()


@pytest.fixture
def month(fake: FakeBilling, payer: Payer, amount: int) -> list[bytes]:
    """The events of a month: created, changed, renewed, partly refunded, disputed, reinstated, cancelled."""
    payer.upsert(amount)
    (first,) = fake.paid_invoices_since(since=_BEFORE_ALL)
    payer.upsert(amount + 500)
    fake.pass_time(32 * DAY)
    refund = fake.refund(first.payment_intent_id, amount // 3)
    fake.refund(first.payment_intent_id, amount // 4)
    fake.fail_refund(refund)
    fake.reinstate(fake.dispute(first.payment_intent_id))
    payer.cancel(immediately=False)
    bodies = [body for body in fake.events if json.loads(body)["type"] in EVENT_TYPES]
    assert len(bodies) > 12
    return bodies


@pytest.fixture
def in_order(fake: FakeBilling, payer: Payer, month: list[bytes]) -> Any:
    """The rows after the events in their order."""
    with _rolled_back():
        process_events(month, now=fake.now())
        assert len(payer.payouts) == 2
        return final_rows(), payer.balance


@given(data=st.data())
@_property
def test_every_permutation_of_events_with_repeats_ends_in_the_same_rows(
    fake: FakeBilling, payer: Payer, month: list[bytes], in_order: Any, data: st.DataObject
) -> None:
    order = data.draw(st.permutations(range(len(month))))
    repeats = data.draw(st.lists(st.sampled_from(range(len(month))), max_size=4))
    with _rolled_back():
        process_events([month[place] for place in [*order, *repeats]], now=fake.now())
        assert (final_rows(), payer.balance) == in_order
        assert not StripeEvent.objects.exclude(status="processed").exists()
        assert find_differences() == []


Step = Callable[[FakeBilling, Payer, random.Random], Any]


def _payments(payer: Payer) -> list[str]:
    return [payout.stripe_payment_intent_id for payout in payer.payouts]


def _refund(fake: FakeBilling, payer: Payer, rng: random.Random) -> None:
    for payment in _payments(payer)[:1]:
        fake.refund(payment, rng.randint(1, 200))


def _another(fake: FakeBilling, payer: Payer, rng: random.Random) -> None:
    with suppress(NoSubscription):  # It may have ended by itself, as it was states to.
        payer.cancel(immediately=True)
    payer.upsert(3_000)


def _reinstate(fake: FakeBilling, payer: Payer, rng: random.Random) -> None:
    for dispute in list(fake.disputes)[-1:]:
        fake.reinstate(dispute)


STEPS: dict[str, Step] = {
    "change": lambda fake, payer, rng: payer.upsert(rng.randint(1_000, 9_000)),
    "cancel": lambda fake, payer, rng: payer.upsert(5_000, cancels=True),
    "resume": lambda fake, payer, rng: payer.upsert(5_000),
    "another": _another,
    "renew": lambda fake, payer, rng: fake.pass_time(31 * DAY),
    "wait": lambda fake, payer, rng: fake.pass_time(rng.randint(1, 20 * DAY)),
    "refund": _refund,
    "dispute": lambda fake, payer, rng: [fake.dispute(payment) for payment in _payments(payer)[-1:]],
    "reinstate": _reinstate,
}


@given(steps=st.lists(st.sampled_from(sorted(STEPS)), max_size=8), seed=st.integers(0, 2**32))
@settings(_property, max_examples=2 * _ORDERS)
def test_events_that_arrive_late_among_newer_ones_end_in_the_same_rows(
    rates: dict[str, int], steps: list[str], seed: int
) -> None:
    rng, fake = random.Random(seed), FakeBilling(webhook_secrets=django_settings.STRIPE_WEBHOOK_SECRETS)
    set_billing_client(fake)
    with _rolled_back():
        payer = Payer(fake, UserFactory.create()).with_card()
        payer.upsert(rng.randint(1_000, 9_000))
        event_count = 0
        waiting: list[bytes] = []
        for step in steps:
            STEPS[step](fake, payer, rng)
            waiting += fake.events[event_count:]
            event_count = len(fake.events)
            rng.shuffle(waiting)
            some = rng.randint(0, len(waiting))
            _process_new(waiting[:some], fake)
            waiting = waiting[some:]
        _process_new([*waiting, *fake.events[event_count:]], fake)
        _assert_rows_follow_stripe(fake, payer)
        assert not StripeEvent.objects.exclude(status="processed").exists()


def _process_new(bodies: list[bytes], fake: FakeBilling) -> None:
    """Process each event that is not processed yet."""
    processed = set(StripeEvent.objects.filter(status="processed").values_list("stripe_event_id", flat=True))
    process_events([body for body in bodies if json.loads(body)["id"] not in processed], now=fake.now())


def _assert_rows_follow_stripe(fake: FakeBilling, payer: Payer) -> None:
    """The rows follow from what Stripe has now."""
    stored = {row.stripe_subscription_id: row for row in payer.user.subscriptions.all()}
    states = fake.list_subscriptions(customer_id=payer.customer.stripe_customer_id)
    assert {
        state.subscription_id: (state.status, state.amount_minor, state.ended_at) for state in states
    } == {key: (row.status, row.amount_minor, row.ended_at) for key, row in stored.items()}
    paid = {invoice.invoice_id for invoice in fake.paid_invoices_since(since=_BEFORE_ALL)}
    assert {payout.stripe_invoice_id for payout in payer.payouts} == paid
    balance = 0
    for payout in payer.payouts:
        returned = fake.returned_money(payment_intent_id=payout.stripe_payment_intent_id)
        taken = clawback_target(
            paid_out=payout.credits,
            collected_minor=payout.amount_minor,
            returned_minor=returned.total_minor,
        )
        assert payout.credits_taken_back() == taken
        balance += payout.credits - taken
    assert payer.balance == balance
    newest = max(payer.payouts, key=lambda payout: (payout.period_start, payout.subscription.pk))
    subscription = newest.subscription
    of_the_period = subscription.payouts.filter(period_end=newest.period_end)
    left = sum(payout.credits - payout.credits_taken_back() for payout in of_the_period)
    end = min(newest.period_end, subscription.ended_at or newest.period_end)
    if left == 0:
        end = newest.period_start
    allowance = payer.user.allowance
    assert (allowance.credits, allowance.starts_at) == (left, newest.period_start)
    assert allowance.ends_at == end
    assert allowance.renews == (end == newest.period_end and subscription.renews())
