"""A bank that decides later: nothing is paid twice, voided or called a decline until it has decided."""

import secrets
from collections.abc import Callable
from datetime import timedelta

import pytest

from payments.errors import PaymentProcessing
from payments.models import AutoTopUp, CreditPack, Purchase, StripeEvent, Subscription
from payments.services import purchases, standing, top_ups
from tests.payments.buying import buy, new_pack
from tests.payments.payers import Payer
from tests.payments.stripe_accounts import DoubleAccount
from tests.payments.topping_up import AGAIN, Consent, consent, pack, run
from tests.payments.webhook_events import process_all_events

__all__ = ["consent", "pack"]
pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _bank_decides_later(double: DoubleAccount) -> None:
    double.controls.off_session("processing")


def _payments(double: DoubleAccount) -> list[str]:
    """Return the ids of the payments that a bank was asked for, oldest first."""
    intents = double.v1.payment_intents.list({"limit": 100}).data
    return [intent.id for intent in intents if intent.status != "requires_payment_method"][::-1]


def _next_step(payer: Payer) -> str:
    return standing.report(user=payer.user, now=payer.account.now()).next_step


@pytest.mark.parametrize("decline_code", [None, "insufficient_funds"])
def test_a_purchase_waits_for_the_bank_and_is_paid_once(
    double: DoubleAccount, payer: Payer, pack: CreditPack, decline_code: str | None
) -> None:
    key = secrets.token_hex(8)
    for _ in range(3):
        with pytest.raises(PaymentProcessing):
            buy(payer, pack, key)
    (intent,) = _payments(double)
    assert (Purchase.objects.get().status, payer.balance) == ("open", 0)
    double.controls.settle_payment(intent, decline_code=decline_code)
    double.controls.off_session("action")
    assert buy(payer, pack, key).status == "paid"
    process_all_events(double)
    # After a decline, the repeat has charged the card.
    assert len(payer.purchases) == len(double.v1.charges.list().data) == 1


def test_another_purchase_and_the_daily_sweep_leave_it_open(
    double: DoubleAccount, payer: Payer, pack: CreditPack
) -> None:
    with pytest.raises(PaymentProcessing):
        buy(payer, pack)
    with pytest.raises(PaymentProcessing):
        buy(payer, new_pack())
    assert purchases.close_unpaid(now=double.now() + timedelta(days=2)) == 0
    purchase = Purchase.objects.get()
    assert (purchase.status, len(_payments(double))) == ("open", 1)
    double.controls.settle_payment(_payments(double)[0])
    process_all_events(double)
    purchase.refresh_from_db()
    assert (purchase.status, len(payer.purchases)) == ("paid", 1)


def _goes_on(_payer: Payer) -> None:
    pass


def _is_withdrawn(payer: Payer) -> None:
    top_ups.withdraw(user=payer.user, now=payer.account.now())


@pytest.mark.parametrize("event", [_goes_on, _is_withdrawn])
def test_a_top_up_buys_nothing_more_and_is_not_paused(
    double: DoubleAccount, payer: Payer, consent: Consent, event: Callable[[Payer], None]
) -> None:
    consent()
    assert run(double) == 0
    event(payer)
    assert [run(double, after=number * AGAIN) for number in range(1, 4)] == [0, 0, 0]
    assert (AutoTopUp.objects.get().paused_at, len(_payments(double))) == (None, 1)
    assert Purchase.objects.get().status == "open"
    double.controls.settle_payment(_payments(double)[0])
    process_all_events(double)
    assert Purchase.objects.get().status == "paid"


def test_a_first_payment_is_waited_for_and_replaced_by_nothing(
    double: DoubleAccount, payer: Payer, amount: int
) -> None:
    for asked in (amount, amount, amount + 1):
        with pytest.raises(PaymentProcessing):
            payer.upsert(asked)
    assert (payer.subscription.status, _next_step(payer)) == ("incomplete", "wait")
    assert len(_payments(double)) == Subscription.objects.count() == 1
    double.controls.settle_payment(_payments(double)[0])
    process_all_events(double)
    assert (payer.subscription.status, _next_step(payer)) == ("active", "nothing")
    assert payer.payout.amount_minor == amount


def test_another_card_does_not_pay_a_second_time(double: DoubleAccount, payer: Payer, amount: int) -> None:
    with pytest.raises(PaymentProcessing):
        payer.upsert(amount)
    payer.with_card()
    process_all_events(double)
    assert (payer.subscription.status, len(_payments(double))) == ("incomplete", 1)
    assert not StripeEvent.objects.exclude(status="processed").exists()


def test_a_declined_first_payment_asks_for_another_card(
    double: DoubleAccount, payer: Payer, amount: int
) -> None:
    process_all_events(double)  # A captured card would pay the invoice again.
    with pytest.raises(PaymentProcessing):
        payer.upsert(amount)
    double.controls.settle_payment(_payments(double)[0], decline_code="insufficient_funds")
    process_all_events(double)
    assert (_next_step(payer), payer.balance) == ("capture-card", 0)
