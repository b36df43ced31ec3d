"""Collected money gains experience on both tracks; returned money takes it back."""

import random
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from django.conf import settings as django_settings
from django.db import connection, transaction
from hypothesis import given, settings
from hypothesis import strategies as st

from credits.models import CreditEntry
from payments.models import Clawback, Payout, PayoutRate
from payments.services import events, payouts
from payments.services.reconciliation import repairs
from payments.stripe import get_billing_client, set_billing_client
from rewards.models import Badge, BadgeTrack, ExperienceEntry
from rewards.services import experience
from tests.database import rewrite
from tests.factories import UserFactory
from tests.fakes.billing import FakeBilling
from tests.killing import ProcessKilled
from tests.payments.payers import Payer
from tests.payments.webhook_events import process_events, receive_event
from tests.rewards.rows import experience_of
from users.models import User

pytestmark = pytest.mark.django_db
SUBSCRIBER, PERMANENT = BadgeTrack.SUBSCRIBER, BadgeTrack.PERMANENT


@pytest.fixture
def subscriber(fake: FakeBilling, user: User, amount: int) -> Payer:
    """A user whose first month is paid out, at a rate that pays more experience for the money than for its units."""
    rewrite(PayoutRate.objects.filter(currency="usd"), experience_per_minor_unit=random.randint(2, 9))
    payer = Payer(fake, user).with_card()
    payer.upsert(amount)
    process_events(fake.events, now=fake.now())
    return payer


def _totals(payer: Payer) -> tuple[int, int]:
    permanent, subscriber = experience_of(payer.user)
    return subscriber, permanent


def _worth(payer: Payer) -> tuple[int, int]:
    payout = payer.payout
    return payout.amount_minor * payout.rate.experience_per_minor_unit, payout.credits


def test_a_payout_gains_by_its_money_and_by_its_credits(subscriber: Payer) -> None:
    assert _totals(subscriber) == _worth(subscriber)
    keys = {entry.track: (entry.key, entry.cause) for entry in ExperienceEntry.objects.all()}
    invoice = subscriber.payout.stripe_invoice_id
    assert keys == {
        "SUBSCRIBER": (f"stripe:invoice:{invoice}:subscriber", "SUBSCRIBED_PAYOUT"),
        "PERMANENT": (f"stripe:invoice:{invoice}:permanent", "SUBSCRIBED_PAYOUT"),
    }


def test_experience_is_gained_once_however_often_a_payment_is_reported(
    subscriber: Payer, fake: FakeBilling
) -> None:
    before = _totals(subscriber)
    process_events(fake.events, now=fake.now())
    process_events([body.replace(b"evt_", b"evt_x") for body in fake.events], now=fake.now())
    repairs.pay_out_missed_invoices(now=fake.now())
    assert _totals(subscriber) == before
    assert ExperienceEntry.objects.count() == 2


def test_a_currency_may_grant_no_subscriber_experience(fake: FakeBilling, user: User, amount: int) -> None:
    rewrite(PayoutRate.objects.filter(currency="usd"), experience_per_minor_unit=0)
    payer = Payer(fake, user).with_card()
    payer.upsert(amount)
    process_events(fake.events, now=fake.now())
    assert _totals(payer) == (0, payer.payout.credits)


def test_a_partial_refund_takes_its_share_of_experience_rounded_down(
    subscriber: Payer, fake: FakeBilling, amount: int
) -> None:
    worth, part = _worth(subscriber), random.randint(1, amount - 1)
    event_count = len(fake.events)
    fake.refund(subscriber.payout.stripe_payment_intent_id, part)
    process_events(fake.events[event_count:], now=fake.now())
    assert _totals(subscriber) == tuple(gained - gained * part // amount for gained in worth)


def test_reinstated_money_gives_the_same_experience_again(subscriber: Payer, fake: FakeBilling) -> None:
    worth, event_count = _worth(subscriber), len(fake.events)
    dispute = fake.dispute(subscriber.payout.stripe_payment_intent_id)
    process_events(fake.events[event_count:], now=fake.now())
    assert _totals(subscriber) == (0, 0)
    # It must not grow by what the user wears by then.
    Badge.objects.update(exp_growth_rate=Decimal(3))
    event_count = len(fake.events)
    fake.reinstate(dispute)
    process_events(fake.events[event_count:], now=fake.now())
    assert _totals(subscriber) == worth


def test_experience_that_grew_by_a_badge_is_taken_back_in_full(
    fake: FakeBilling, user: User, amount: int
) -> None:
    Badge.objects.update(exp_growth_rate=Decimal("1.5"))
    payer = Payer(fake, user).with_card()
    payer.upsert(amount)
    process_events(fake.events, now=fake.now())
    gained = tuple(worth * 3 // 2 for worth in _worth(payer))
    assert _totals(payer) == gained
    event_count = len(fake.events)
    fake.refund(payer.payout.stripe_payment_intent_id, amount // 2)
    process_events(fake.events[event_count:], now=fake.now())
    assert _totals(payer) == tuple(worth - worth * (amount // 2) // amount for worth in gained)
    event_count = len(fake.events)
    fake.refund(payer.payout.stripe_payment_intent_id)
    process_events(fake.events[event_count:], now=fake.now())
    assert _totals(payer) == (0, 0)


def test_a_month_posted_late_gains_by_the_badge_of_the_day_it_is_posted(
    fake: FakeBilling, user: User, amount: int, rates: dict[str, int]
) -> None:
    payer = Payer(fake, user).with_card()
    payer.upsert(amount)
    payer.upsert(2 * amount)
    event_count = len(fake.events)
    fake.pass_time(32 * 86_400)
    Badge.objects.update(exp_growth_rate=Decimal(1))
    process_events(fake.events[event_count:], now=fake.now())
    Badge.objects.update(exp_growth_rate=Decimal(3))
    process_events(fake.events[:event_count], now=fake.now())
    first, second = payer.payouts
    assert (first.amount_minor, second.amount_minor) == (amount, 2 * amount)
    assert payer.balance == first.credits + second.credits
    assert payer.quota().total == second.credits
    assert _totals(payer) == (3 * amount + 2 * amount, 3 * first.credits + second.credits)


def test_experience_of_other_causes_stays(subscriber: Payer, fake: FakeBilling) -> None:
    other = random.randint(1, 99)
    entry = experience.gain(user=subscriber.user, track=PERMANENT, base=other, key="other", cause="TEST")
    event_count = len(fake.events)
    fake.refund(subscriber.payout.stripe_payment_intent_id)
    process_events(fake.events[event_count:], now=fake.now())
    assert _totals(subscriber) == (0, entry.amount)


def test_a_payout_of_one_credit_gains_one_point_and_is_taken_back(fake: FakeBilling, user: User) -> None:
    rewrite(PayoutRate.objects.filter(currency="usd"), credits_per_major_unit=1, experience_per_minor_unit=0)
    payer = Payer(fake, user).with_card()
    payer.upsert(150)
    process_events(fake.events, now=fake.now())
    assert (payer.balance, _totals(payer)) == (1, (0, 1))
    event_count = len(fake.events)
    fake.refund(payer.payout.stripe_payment_intent_id)
    process_events(fake.events[event_count:], now=fake.now())
    assert (payer.balance, _totals(payer)) == (0, (0, 0))


def test_one_cent_is_enough_to_be_paid_out(fake: FakeBilling, subscriber: Payer) -> None:
    invoice = get_billing_client().retrieve_invoice(invoice_id=subscriber.payout.stripe_invoice_id)
    assert [payouts.is_payable(invoice=replace(invoice, collected_minor=cents)) for cents in (0, 1)] == [
        False,
        True,
    ]


def test_a_cent_may_move_experience_and_no_credit(fake: FakeBilling, user: User) -> None:
    rewrite(PayoutRate.objects.filter(currency="usd"), credits_per_major_unit=1, experience_per_minor_unit=1)
    payer = Payer(fake, user).with_card()
    payer.upsert(5_000)
    process_events(fake.events, now=fake.now())
    event_count = len(fake.events)
    fake.refund(payer.payout.stripe_payment_intent_id, 1)
    process_events(fake.events[event_count:], now=fake.now())
    assert (payer.balance, _totals(payer)) == (50, (4_999, 50))
    step = Clawback.objects.get()
    assert (step.credits, step.entry) == (0, None)
    process_events([fake.events[-1].replace(b"evt_", b"evt_x")], now=fake.now())
    assert Clawback.objects.count() == 1


@pytest.mark.parametrize("track", ["SUBSCRIBER", "PERMANENT"])
def test_a_process_killed_while_posting_experience_leaves_nothing_half_done(
    fake: FakeBilling, user: User, amount: int, track: str
) -> None:
    payer = Payer(fake, user).with_card()
    payer.upsert(amount)
    paid = receive_event(next(body for body in fake.events if b"invoice.paid" in body), now=fake.now())

    def die(run: Any, sql: str, params: Any, *rest: Any) -> Any:
        if "INSERT INTO rewards_experience" in sql and params["track"] == track:
            raise ProcessKilled
        return run(sql, params, *rest)

    with connection.execute_wrapper(die), pytest.raises(ProcessKilled):
        events.process(event_id=paid.pk, now=fake.now())
    assert not ExperienceEntry.objects.exists()
    assert not CreditEntry.objects.exists()
    assert events.process_due(now=fake.now()) == 1
    assert _totals(payer) == _worth(payer)


MOVES = ("refund", "fail", "dispute", "reinstate", "tell")


@given(
    collected=st.integers(50, 10**6),
    growth=st.decimals("1", "2", places=2),
    moves=st.lists(st.sampled_from(MOVES), max_size=10),
    seed=st.integers(0, 2**32),
)
@settings(max_examples=6, database=None)
def test_experience_follows_the_formula_for_any_refunds_and_disputes(
    rates: dict[str, int], collected: int, growth: Decimal, moves: list[str], seed: int
) -> None:
    fake = FakeBilling(webhook_secrets=django_settings.STRIPE_WEBHOOK_SECRETS)
    set_billing_client(fake)
    point = transaction.savepoint()
    try:
        Badge.objects.update(exp_growth_rate=growth)
        payer = Payer(fake, UserFactory.create()).with_card()
        payer.upsert(collected)
        process_events(fake.events, now=fake.now())
        gained = tuple(int(worth * growth) for worth in _worth(payer))
        assert _totals(payer) == gained
        _move(fake, payer, moves, random.Random(seed))
        money = fake.returned_money(payment_intent_id=payer.payout.stripe_payment_intent_id)
        returned = min(collected, money.total_minor)
        assert _totals(payer) == tuple(worth - worth * returned // collected for worth in gained)
        before = ExperienceEntry.objects.count(), Payout.objects.count()
        repeated = [next(body for body in fake.events if b"invoice.paid" in body), fake.events[-1]]
        process_events([body.replace(b"evt_", b"evt_x") for body in repeated], now=fake.now())
        assert (ExperienceEntry.objects.count(), Payout.objects.count()) == before
    finally:
        transaction.savepoint_rollback(point)


def _move(fake: FakeBilling, payer: Payer, moves: list[str], rng: random.Random) -> None:
    """Make these moves, and process their events in another order."""
    payment, event_count = payer.payout.stripe_payment_intent_id, len(fake.events)
    refunds, disputes = [], []
    for move in moves:
        left = payer.payout.amount_minor - fake.refunded(payment)
        if move == "refund" and left:
            refunds.append(fake.refund(payment, rng.randint(1, left)))
        elif move == "fail" and refunds:
            fake.fail_refund(rng.choice(refunds))
        elif move == "dispute" and left:
            disputes.append(fake.dispute(payment, rng.randint(1, left)))
        elif move == "reinstate" and disputes:
            fake.reinstate(rng.choice(disputes))
        elif move == "tell":
            late = fake.events[event_count:]
            process_events(rng.sample(late, len(late)), now=fake.now())
            event_count = len(fake.events)
    late = fake.events[event_count:]
    process_events(rng.sample(late, len(late)), now=fake.now())
