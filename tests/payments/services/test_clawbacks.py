"""Credits follow the money back and forth: credits taken back are a function of the money returned."""

import json
import random
import secrets
from datetime import timedelta
from typing import Any

import pytest
import stripe
from django.conf import settings as django_settings
from django.db import ProgrammingError, transaction
from hypothesis import given, settings
from hypothesis import strategies as st

from credits.errors import InsufficientCredits
from credits.models import Allowance, CreditEntry
from credits.services import holds
from credits.services.reconciliation import find_differences
from payments.models import Clawback, MoneyReturn, Payout, PayoutRate
from payments.services.reconciliation import repairs
from payments.stripe import set_billing_client
from tests.credits.holding import capture, place_hold
from tests.database import rewrite
from tests.factories import UserFactory
from tests.fakes.billing import FakeBilling
from tests.payments.payers import Payer
from tests.payments.reconciling import assert_no_findings, findings
from tests.payments.stripe_accounts import DoubleAccount
from tests.payments.webhook_events import process_all_events, process_events, webhook_body

pytestmark = pytest.mark.django_db


def _taken(running: Payer) -> int:
    return sum(step.credits for step in Clawback.objects.filter(payout=running.payout))


def test_a_partial_refund_takes_its_share_of_credits_rounded_down(
    double: DoubleAccount, running: Payer, amount: int
) -> None:
    payout = running.payout
    part = random.randint(1, amount - 1)
    double.refund(payout.stripe_payment_intent_id, part)
    process_all_events(double)
    step = Clawback.objects.get()
    assert step.credits == payout.credits * part // amount
    assert step.entry is not None
    assert (step.entry.amount, step.entry.source) == (-step.credits, "PAYOUT_CLAWBACK")
    assert step.entry.reason.startswith("refund.created evt_")
    assert running.balance == payout.credits - step.credits
    assert Allowance.objects.get().credits == payout.credits - step.credits


def test_each_change_of_the_returned_money_is_kept(
    double: DoubleAccount, running: Payer, amount: int
) -> None:
    payment = running.payout.stripe_payment_intent_id
    refund = double.refund(payment, 1)
    process_all_events(double)
    double.fail_refund(refund)
    double.dispute(payment)
    process_all_events(double)

    rows = MoneyReturn.objects.filter(payout=running.payout)
    moved = [(row.refunded_minor, row.disputed_minor) for row in rows.order_by("pk")]
    assert moved[0] == (1, 0)
    payout = running.payout
    assert (
        tuple(map(sum, zip(*moved, strict=True)))
        == (payout.refunded_minor, payout.disputed_minor)
        == (0, amount)
    )
    with pytest.raises(ProgrammingError, match="permission denied"), transaction.atomic():
        rows.delete()


def test_the_next_month_begins_a_new_allowance(double: DoubleAccount, running: Payer) -> None:
    double.refund(running.payout.stripe_payment_intent_id)
    process_all_events(double)
    double.pass_time(32 * 86_400)
    process_all_events(double)
    assert running.quota().total == running.payout.credits
    assert len(running.payouts) == 2


def test_a_refund_that_fails_gives_the_credits_and_the_allowance_back(
    double: DoubleAccount, running: Payer
) -> None:
    refund = double.refund(running.payout.stripe_payment_intent_id)
    process_all_events(double)
    quota = running.quota()
    assert (quota.available, quota.total, quota.reset_date) == (0, 0, -1)
    assert running.subscription.status == "active"
    assert find_differences() == []
    double.fail_refund(refund)
    process_all_events(double)
    assert [step.credits for step in Clawback.objects.order_by("pk")] == [
        running.payout.credits,
        -running.payout.credits,
    ]
    assert running.balance == running.payout.credits
    assert running.quota().total == running.payout.credits


@pytest.mark.parametrize("won", [True, False])
def test_a_dispute_takes_the_credits_when_the_money_leaves_and_gives_them_back_once_it_is_won(
    double: DoubleAccount, running: Payer, won: bool
) -> None:
    dispute = double.dispute(running.payout.stripe_payment_intent_id, withdraw=False)
    process_all_events(double)
    assert running.balance == running.payout.credits
    double.withdraw(dispute)
    process_all_events(double)
    assert running.balance == 0
    double.controls.close_dispute(dispute, won=won)
    process_all_events(double)
    assert running.balance == (running.payout.credits if won else 0)


def test_a_dispute_of_a_part_takes_its_share_whatever_currency_stripe_pays_it_from(
    double: DoubleAccount, running: Payer, amount: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    payout, part = running.payout, random.randint(2, amount - 1)
    back, request, rate = random.randint(1, part - 1), stripe.RequestsClient.request, random.randint(2, 9)

    def converted(*arguments: Any, **options: Any) -> Any:
        content, *rest = request(*arguments, **options)
        body = json.loads(content)
        for dispute in body["data"] if body.get("url") == "/v1/disputes" else []:
            for movement in dispute["balance_transactions"]:
                movement["amount"] *= rate
        return json.dumps(body).encode(), *rest

    monkeypatch.setattr(stripe.RequestsClient, "request", converted)
    dispute = double.dispute(payout.stripe_payment_intent_id, part)
    process_all_events(double)
    assert _taken(running) == payout.credits * part // amount
    double.controls.reinstate_funds(dispute, back)
    process_all_events(double)
    assert _taken(running) == payout.credits * (part - back) // amount


def test_a_refund_of_reinstated_money_is_clawed_back_in_full(
    double: DoubleAccount, running: Payer, amount: int
) -> None:
    payment = running.payout.stripe_payment_intent_id
    double.reinstate(double.dispute(payment))
    process_all_events(double)
    double.refund(payment, amount // 2)
    process_all_events(double)
    assert _taken(running) == running.payout.credits * (amount // 2) // amount


def test_spent_credits_are_owed_and_nothing_can_be_held_until_they_are_earned(
    double: DoubleAccount, running: Payer
) -> None:
    granted = running.payout.credits
    spent = random.randint(1, granted)
    held = place_hold(user=running.user, credits=spent, key=secrets.token_hex(8))
    capture(hold_id=held.hold.pk, credits=spent)
    double.refund(running.payout.stripe_payment_intent_id)
    process_all_events(double)
    assert running.balance == -spent
    assert running.quota().available == -spent
    with pytest.raises(InsufficientCredits):
        place_hold(user=running.user, credits=1, key=secrets.token_hex(8))
    assert find_differences() == []


def test_money_refunded_before_the_payout_is_taken_back_with_it(
    double: DoubleAccount, payer: Payer, amount: int
) -> None:
    payer.upsert(amount)
    (invoice,) = double.events("invoice.paid")
    intent = double.v1.payment_intents.list({"customer": payer.customer.stripe_customer_id}).data[0].id
    double.refund(intent, amount // 2)
    process_events([webhook_body(event) for event in double.events("refund.created")], now=double.now())
    assert not Payout.objects.exists()
    process_events([webhook_body(invoice)], now=double.now())
    taken = payer.payout.credits * (amount // 2) // amount
    assert (payer.balance, _taken(payer)) == (payer.payout.credits - taken, taken)


def test_money_refunded_before_a_payout_by_beat_is_taken_back_with_it(
    double: DoubleAccount, payer: Payer, amount: int
) -> None:
    payer.upsert(amount)
    intent = double.v1.payment_intents.list({"customer": payer.customer.stripe_customer_id}).data[0].id
    double.refund(intent)
    assert repairs.pay_out_missed_invoices(now=double.now()) == 1
    assert payer.balance == 0
    assert payer.quota().total == 0


def test_a_refund_of_another_payment_takes_no_credits(double: DoubleAccount, running: Payer) -> None:
    bill = double.controls.create_invoice(running.customer.stripe_customer_id, 900)
    payments = double.v1.invoices.retrieve(bill["id"], {"expand": ["payments"]}).payments
    double.refund(payments.data[0].payment.payment_intent)
    process_all_events(double)
    assert not Clawback.objects.exists()


MOVES = ("refund", "fail", "dispute", "withdraw", "reinstate", "tell", "spend")


@given(
    collected=st.integers(50, 10**6),
    rate=st.integers(1, 10_000),
    moves=st.lists(st.sampled_from(MOVES), max_size=12),
    seed=st.integers(0, 2**32),
)
@settings(max_examples=6, database=None)
def test_clawbacks_add_up_to_the_formula_for_any_order_of_refunds_and_disputes(
    rates: dict[str, int], collected: int, rate: int, moves: list[str], seed: int
) -> None:
    dice = random.Random(seed)
    fake = FakeBilling(webhook_secrets=django_settings.STRIPE_WEBHOOK_SECRETS)
    set_billing_client(fake)
    point = transaction.savepoint()
    try:
        _live(fake, Payer(fake, UserFactory.create()).with_card(), collected, rate, moves, dice)
    finally:
        transaction.savepoint_rollback(point)


def _spend(payer: Payer, credits: int) -> int:
    held = place_hold(user=payer.user, credits=credits, key=secrets.token_hex(8))
    capture(hold_id=held.hold.pk, credits=credits)
    return credits


def _assert_holdable(payer: Payer) -> None:
    """The balance can be held, and not one credit more; a debtor can hold nothing."""
    with pytest.raises(InsufficientCredits):
        place_hold(user=payer.user, credits=max(payer.balance, 0) + 1, key=secrets.token_hex(8))
    if payer.balance > 0:
        held = place_hold(user=payer.user, credits=payer.balance, key=secrets.token_hex(8))
        holds.release(hold_id=held.hold.pk)


def _live(
    fake: FakeBilling, payer: Payer, collected: int, rate: int, moves: list[str], dice: random.Random
) -> None:
    rewrite(PayoutRate.objects.filter(currency="usd"), credits_per_major_unit=rate)
    payer.upsert(collected)
    process_events(fake.events, now=fake.now())
    if collected * rate // 100 == 0:
        assert not Payout.objects.exists()
        return
    payout, event_count, spent = payer.payout, len(fake.events), 0
    refunds, disputes = [], []
    for move in moves:
        left = collected - fake.refunded(payout.stripe_payment_intent_id)
        if move == "refund" and left:
            refunds.append(fake.refund(payout.stripe_payment_intent_id, dice.randint(1, left)))
        elif move == "fail" and refunds:
            fake.fail_refund(dice.choice(refunds))
        elif move == "dispute" and left:
            disputes.append(
                fake.dispute(payout.stripe_payment_intent_id, dice.randint(1, left), withdraw=False)
            )
        elif move in ("withdraw", "reinstate") and disputes:
            getattr(fake, move)(dice.choice(disputes))
        elif move == "tell":
            process_events(fake.events[event_count:], now=fake.now() + timedelta(seconds=len(moves)))
            event_count = len(fake.events)
        elif move == "spend" and payer.balance > 0:
            spent += _spend(payer, dice.randint(1, payer.balance))
    process_events(dice.sample(fake.events, len(fake.events)), now=fake.now())
    money = fake.returned_money(payment_intent_id=payout.stripe_payment_intent_id)
    returned = min(collected, money.refunded_minor + money.disputed_minor)
    assert _taken(payer) == payout.credits * returned // collected
    assert payer.balance == payout.credits - payout.credits * returned // collected - spent
    _assert_holdable(payer)
    assert payer.quota().total == payout.credits - _taken(payer)
    steps = CreditEntry.objects.filter(source="PAYOUT_CLAWBACK").order_by("account_version")
    assert all(one.balance_after == one.balance_before + one.amount for one in steps)
    assert find_differences() == []


@pytest.mark.parametrize("is_won", [False, True])
def test_a_dispute_is_compared_by_its_state_and_not_by_amounts_at_two_rates_of_exchange(
    double: DoubleAccount, running: Payer, is_won: bool
) -> None:
    """Money of another settlement currency comes back at another rate, so a part of it seems to stay away."""
    dispute = double.dispute(running.payout.stripe_payment_intent_id)
    process_all_events(double)
    double.controls.close_dispute(dispute, won=is_won, reinstate=False)
    if is_won:
        double.controls.reinstate_funds(dispute, running.payout.charged_minor - random.randint(1, 100))
    process_all_events(double)
    repairs.claw_back_missed_money(now=double.now())
    kept = running.payout.credits if is_won else 0
    assert (running.balance, running.payout.disputed_minor == 0) == (kept, is_won)
    assert_no_findings(double)


def test_a_credit_note_paid_out_of_band_takes_its_share_back_until_it_is_voided(
    double: DoubleAccount, running: Payer, amount: int
) -> None:
    payout, part = running.payout, random.randint(1, amount - 1)
    note = double.controls.create_credit_note(payout.stripe_invoice_id, part, out_of_band=True)
    process_all_events(double)
    assert _taken(running) == payout.credits * part // amount
    # The money moved outside of Stripe, so the account's movements do not show it.
    assert (running.payout.refunded_minor, MoneyReturn.objects.count()) == (0, 0)
    double.refund(payout.stripe_payment_intent_id, 1)
    process_all_events(double)
    assert _taken(running) == payout.credits * (part + 1) // amount
    assert_no_findings(double)
    double.controls.void_credit_note(note["id"])
    process_all_events(double)
    assert _taken(running) == payout.credits // amount
    assert_no_findings(double)


def test_a_credit_note_out_of_band_whose_event_was_lost_is_a_difference_that_the_night_repairs(
    double: DoubleAccount, running: Payer, amount: int
) -> None:
    double.controls.create_credit_note(running.payout.stripe_invoice_id, amount, out_of_band=True)
    assert [finding["rule"] for finding in findings(double)] == ["clawback-sum"]
    repairs.claw_back_missed_money(now=double.now())
    assert running.balance == 0
    assert_no_findings(double)
