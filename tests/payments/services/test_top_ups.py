"""Automatic top-up: one purchase at a time, within the terms of a consent, never in a loop."""

import secrets
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from credits.services import entries
from gateway.common.errors import InvalidRequest
from payments.errors import PaymentMethodRequired, UnknownPack
from payments.models import AutoTopUp, CreditPack, Purchase
from payments.services import deletion, top_ups
from payments.services.top_ups import Terms
from tests.credits.holding import place_hold
from tests.payments.buying import buy, new_pack
from tests.payments.conftest import Refused
from tests.payments.faults import fault_injection, killed_after, killed_before, once
from tests.payments.payers import Payer
from tests.payments.reconciling import assert_no_findings
from tests.payments.stripe_accounts import DECLINES, NEEDS_CONFIRMATION, VISA, DoubleAccount
from tests.payments.webhook_events import process_all_events
from tests.threads import at_once

pytestmark = pytest.mark.django_db
CONSENT = "Buy this pack whenever my credits run low, up to the limit of each month."
Consent = Callable[..., AutoTopUp]


@pytest.fixture
def pack(rates: dict[str, int]) -> CreditPack:
    return new_pack(amount=1_000, bonus=0)


@pytest.fixture
def consent(double: DoubleAccount, payer: Payer, pack: CreditPack) -> Consent:
    """Return a function that turns top-up on, by default below a single credit and without a real limit."""

    def give(*, threshold: int = 1, limit: int = 10**6) -> AutoTopUp:
        terms = Terms(min(threshold, 100), pack.code, limit, CONSENT)
        given = top_ups.consent(user=payer.user, terms=terms, now=double.now())
        # A higher one stands for credits that are used up at once.
        AutoTopUp.objects.filter(pk=given.pk).update(threshold=threshold)
        given.refresh_from_db()
        return given

    return give


def _charged(double: DoubleAccount) -> list[int]:
    return [charge.amount for charge in double.v1.charges.list({"limit": 100}).data if charge.paid]


def _run(double: DoubleAccount, *, after: timedelta = timedelta(0)) -> int:
    return top_ups.run(now=double.now() + after)


def _spend_all(payer: Payer) -> None:
    entries.adjust(
        user=payer.user, credits=-payer.balance, key=secrets.token_hex(8), actor=None, reason="spent"
    )


AGAIN = top_ups.COOLDOWN + timedelta(seconds=1)


def test_below_the_threshold_a_pack_is_bought_and_not_above(
    double: DoubleAccount, payer: Payer, pack: CreditPack, consent: Consent, rates: dict[str, int]
) -> None:
    worth = pack.amount_minor * rates["usd"] // 100
    given = consent(threshold=worth)
    assert _run(double) == 1
    assert (payer.balance, _charged(double)) == (worth, [1_000])
    assert Purchase.objects.get().top_up == given
    assert _run(double, after=AGAIN) == 0  # The threshold itself is enough.
    place_hold(user=payer.user, credits=1, key=secrets.token_hex(8), debt_limit=0)
    assert _run(double, after=AGAIN) == 1  # Held credits are not available.
    process_all_events(double)
    assert_no_findings(double)


def test_two_purchases_are_a_cooldown_apart(double: DoubleAccount, payer: Payer, consent: Consent) -> None:
    consent(threshold=10**9)
    assert [_run(double), _run(double), _run(double, after=top_ups.COOLDOWN / 2)] == [1, 0, 0]
    assert _run(double, after=AGAIN) == 1
    assert len(_charged(double)) == 2


def test_a_month_costs_at_most_its_limit(double: DoubleAccount, payer: Payer, consent: Consent) -> None:
    consent(threshold=10**9, limit=2_999)
    now = double.now().replace(day=1)
    for number in range(6):
        top_ups.run(now=now + number * AGAIN)
    assert len(_charged(double)) == 2
    # Another consent does not begin the month anew, and the next month does.
    consent(threshold=10**9, limit=2_999)
    top_ups.run(now=now + 7 * AGAIN)
    assert len(_charged(double)) == 2
    top_ups.run(now=now + timedelta(days=32))
    assert len(_charged(double)) == 3


@pytest.mark.parametrize(
    ("card", "reason"),
    [
        (DECLINES, "card-declined"),
        (NEEDS_CONFIRMATION, "authentication-required"),
        ("", "payment-method-required"),
    ],
)
def test_a_card_that_cannot_pay_pauses_it_until_the_next_consent(
    double: DoubleAccount, payer: Payer, consent: Consent, card: str, reason: str
) -> None:
    consent(threshold=100)
    customer = payer.customer.stripe_customer_id
    if card:
        double.capture(customer, card)
    else:
        (visa,) = double.v1.payment_methods.list({"customer": customer}).data
        double.v1.payment_methods.detach(visa.id)
    for number in range(4):
        assert _run(double, after=number * AGAIN) == 0
    process_all_events(double)
    paused, tried = AutoTopUp.objects.get(), Purchase.objects.get()
    assert (paused.paused_reason, paused.paused_at is not None) == (reason, True)
    assert bool(paused.decline_code) == (card == DECLINES)
    assert (tried.status, tried.failure_code, payer.balance) == ("void", reason, 0)
    assert [row.status for row in double.v1.invoices.list().data] == (["void"] if card else [])
    double.capture(customer, VISA)
    assert _run(double, after=5 * AGAIN) == 0
    consent(threshold=100)
    assert _run(double, after=6 * AGAIN) == 1


def test_a_withdrawn_consent_buys_nothing_more(double: DoubleAccount, payer: Payer, consent: Consent) -> None:
    consent(threshold=100)
    top_ups.withdraw(user=payer.user, now=double.now())
    assert _run(double) == 0
    assert (Purchase.objects.count(), _charged(double)) == (0, [])


@pytest.mark.parametrize("method", ["create_purchase", "has_payment_method"])
def test_a_consent_withdrawn_during_a_purchase_stops_it(
    double: DoubleAccount, payer: Payer, consent: Consent, method: str
) -> None:
    consent(threshold=100)
    with fault_injection() as client:
        client.after[method] = once(lambda: top_ups.withdraw(user=payer.user, now=double.now()))
        assert _run(double) == 0
    process_all_events(double)
    assert (Purchase.objects.get().status, _charged(double), payer.balance) == ("void", [], 0)


@pytest.mark.parametrize("changed", ["price", "bonus", "offer"])
def test_other_terms_of_the_pack_need_another_consent(
    double: DoubleAccount, payer: Payer, pack: CreditPack, consent: Consent, changed: str
) -> None:
    consent(threshold=100)
    values: dict[str, dict[str, Any]] = {
        "price": {"amount_minor": 999},
        "bonus": {"bonus_credits": 1},
        "offer": {"is_offered": False},
    }
    CreditPack.objects.filter(pk=pack.pk).update(**values[changed])
    assert _run(double) == 0
    assert AutoTopUp.objects.get().paused_reason == "pack-changed"
    assert not Purchase.objects.exists()


@pytest.mark.parametrize(
    ("at", "method"),
    [
        (killed_before, "create_purchase"),
        (killed_after, "create_purchase"),
        (killed_before, "pay_invoice"),
        (killed_after, "pay_invoice"),
    ],
)
def test_a_crashed_worker_buys_once(
    double: DoubleAccount, payer: Payer, consent: Consent, at: Callable[..., object], method: str
) -> None:
    consent(threshold=100)
    with at(method):  # type: ignore[attr-defined]
        _run(double)
    assert _run(double, after=timedelta(minutes=2)) == 1
    process_all_events(double)
    assert (_charged(double), Purchase.objects.get().status) == ([1_000], "paid")
    assert len(double.v1.invoices.list().data) == 1


@pytest.mark.parametrize("method", ["create_purchase", "pay_invoice"])
def test_a_worker_that_crashes_before_days_of_downtime_buys_once(
    double: DoubleAccount, payer: Payer, consent: Consent, method: str
) -> None:
    consent(threshold=100)
    with killed_after(method):
        _run(double)
    double.pass_time(2 * 86_400)  # Stripe has forgotten the keys by then.
    assert _run(double) == 1
    process_all_events(double)
    assert (_charged(double), Purchase.objects.get().status) == ([1_000], "paid")
    assert len(double.v1.invoices.list().data) == 1


def test_a_manual_purchase_has_priority(
    double: DoubleAccount, payer: Payer, pack: CreditPack, consent: Consent
) -> None:
    consent(threshold=100)
    with fault_injection() as client:
        client.after["create_purchase"] = once(lambda: buy(payer, pack))
        assert _run(double) == 0
    assert (len(_charged(double)), AutoTopUp.objects.get().paused_reason) == (1, "")
    assert sorted(Purchase.objects.values_list("status", flat=True)) == ["paid", "void"]


def test_terms_that_cannot_hold_are_refused(
    double: DoubleAccount, payer: Payer, pack: CreditPack, consent: Consent, refused: Refused
) -> None:
    with refused(InvalidRequest):
        consent(limit=999)
    CreditPack.objects.filter(pk=pack.pk).update(is_offered=False)
    with refused(UnknownPack):
        consent()
    assert not AutoTopUp.objects.exists()


def test_without_a_card_there_is_no_consent(double: DoubleAccount, payer: Payer, consent: Consent) -> None:
    (card,) = double.v1.payment_methods.list({"customer": payer.customer.stripe_customer_id}).data
    double.v1.payment_methods.detach(card.id)
    with pytest.raises(PaymentMethodRequired):
        consent()
    assert not AutoTopUp.objects.exists()


def test_a_deleted_account_is_not_topped_up(double: DoubleAccount, payer: Payer, consent: Consent) -> None:
    consent(threshold=100)
    deletion.leave_stripe(payer.user, double.now())
    assert _run(double) == 0
    assert (AutoTopUp.objects.get().consent, _charged(double)) == (CONSENT, [])
    assert AutoTopUp.objects.get().withdrawn_at is not None


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("impatient")
def test_concurrent_calls_that_cross_the_threshold_cause_one_purchase(
    double: DoubleAccount, payer: Payer, pack: CreditPack, consent: Consent
) -> None:
    bought = buy(payer, pack)
    given = payer.balance
    consent(threshold=given)
    now = double.now()

    def call() -> int:
        place_hold(user=payer.user, credits=1, key=secrets.token_hex(8), debt_limit=0)
        return top_ups.run(now=now)

    results = at_once([call] * 16)
    assert sum(result for result in results if isinstance(result, int)) >= 1
    (automatic,) = Purchase.objects.exclude(pk=bought.pk)
    assert (automatic.status, _charged(double)) == ("paid", [1_000, 1_000])
    at_once([partial(top_ups.run, now=now + timedelta(minutes=5))] * 8)
    assert Purchase.objects.count() == 2
