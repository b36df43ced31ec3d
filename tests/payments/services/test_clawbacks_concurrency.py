"""Refunds and a won dispute, processed by concurrent workers: each credit is taken once."""

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
from tests.payments.payers import Payer
from tests.payments.stripe_accounts import DoubleAccount
from tests.payments.webhook_events import process_all_events, receive_event, webhook_body
from tests.threads import at_once

pytestmark = pytest.mark.django_db(transaction=True)


def test_refunds_and_disputes_are_clawed_back_once_by_concurrent_workers(
    double: DoubleAccount, payer: Payer, amount: int
) -> None:
    payer.upsert(amount)
    process_all_events(double)
    payout = payer.payout
    earlier_ids = {event.id for event in double.events()}
    double.refund(payout.stripe_payment_intent_id, amount // 3)
    double.refund(payout.stripe_payment_intent_id, amount // 4)
    double.reinstate(double.dispute(payout.stripe_payment_intent_id))
    rows = [
        receive_event(webhook_body(event), now=double.now())
        for event in double.events()
        if event.id not in earlier_ids
    ]
    calls: list[Callable[[], object]] = [
        partial(events.process, event_id=row.pk, now=double.now()) for row in rows * 2
    ]
    sweeps = (
        repairs.claw_back_missed_money,
        synchronisation.refresh_subscriptions,
        events.fetch_undelivered,
    )
    calls += [partial(sweep, now=double.now()) for sweep in sweeps] * 2

    results = at_once(random.sample(calls, len(calls)))
    assert [result for result in results if isinstance(result, DomainError)] == []
    # The delayed caller retries.
    events.process_due(now=double.now() + timedelta(hours=1))
    repairs.claw_back_missed_money(now=double.now())

    taken = payout.credits * (amount // 3 + amount // 4) // amount
    assert sum(step.credits for step in Clawback.objects.all()) == taken
    assert payer.balance == payout.credits - taken
    assert find_differences() == []
