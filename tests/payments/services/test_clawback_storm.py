"""Refunds, a dispute that was won, and everybody who looks for them at the same moment: each credit is taken once."""

import random
from collections.abc import Callable
from datetime import timedelta
from functools import partial

import pytest

from credits.services.reconciliation import find_differences
from gateway.common.errors import DomainError
from payments.models import Clawback
from payments.services import events, synchronisation
from payments.services.reconciliation import repairs
from tests.payments.mail import body_of, deliver_all, store
from tests.payments.people import Payer
from tests.payments.worlds import DoubleWorld
from tests.threads import at_once

pytestmark = pytest.mark.django_db(transaction=True)


def test_money_that_goes_back_is_taken_once_whoever_hears_of_it_and_how_often(
    double: DoubleWorld, payer: Payer, amount: int
) -> None:
    payer.upsert(amount)
    deliver_all(double)
    payout = payer.payout
    known = {event.id for event in double.events()}
    double.refund(payout.stripe_payment_intent_id, amount // 3)
    double.refund(payout.stripe_payment_intent_id, amount // 4)
    double.reinstate(double.dispute(payout.stripe_payment_intent_id))
    rows = [store(body_of(event), now=double.now()) for event in double.events() if event.id not in known]
    calls: list[Callable[[], object]] = [
        partial(events.process, event_id=row.pk, now=double.now()) for row in rows * 2
    ]
    sweeps = (
        repairs.claw_back_missed_money,
        synchronisation.refresh_subscriptions,
        events.fetch_undelivered,
    )
    calls += [partial(sweep, now=double.now()) for sweep in sweeps] * 2

    answers = at_once(random.sample(calls, len(calls)))
    assert [answer for answer in answers if isinstance(answer, DomainError)] == []
    # Who was told to wait comes again.
    events.process_due(now=double.now() + timedelta(hours=1))
    repairs.claw_back_missed_money(now=double.now())

    gone = payout.credits * (amount // 3 + amount // 4) // amount
    assert sum(step.credits for step in Clawback.objects.all()) == gone
    assert payer.balance == payout.credits - gone
    assert find_differences() == []
