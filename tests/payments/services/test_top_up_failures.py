"""Automatic top-up when Stripe is away, nothing can be paid, or a consent ends: it stops, and says why."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import IntegrityError, transaction

from payments.errors import BillingUnavailable, RateMissing
from payments.models import AutoTopUp, Customer, PayoutRate, Purchase
from payments.services import purchases, top_ups
from tests.database import rewrite
from tests.payments.buying import new_pack
from tests.payments.faults import fault_injection, killed_before, once
from tests.payments.payers import Payer
from tests.payments.stripe_accounts import DECLINES, VISA, DoubleAccount
from tests.payments.topping_up import AGAIN, PRICE, Consent, consent, pack, run

__all__ = ["consent", "pack"]
pytestmark = pytest.mark.django_db


def test_while_stripe_is_away_nothing_is_paused_and_the_purchase_is_finished_later(
    double: DoubleAccount, payer: Payer, consent: Consent
) -> None:
    def away() -> None:
        raise BillingUnavailable("Stripe does not respond.", retry_after=5)

    consent()
    with fault_injection() as client:
        client.before["create_purchase"] = once(away)
        assert run(double) == 0
    assert (Purchase.objects.get().status, AutoTopUp.objects.get().paused_at) == ("open", None)
    assert run(double, after=timedelta(minutes=2)) == 1
    assert Purchase.objects.get().status == "paid"


def test_a_pack_that_gave_nothing_pauses_it(double: DoubleAccount, payer: Payer, consent: Consent) -> None:
    consent(of=new_pack(amount=50, bonus=0))
    rewrite(PayoutRate.objects.filter(currency="usd"), credits_per_major_unit=1)
    assert [run(double), run(double, after=AGAIN)] == [1, 0]
    assert (AutoTopUp.objects.get().paused_reason, payer.balance) == ("no-credits", 0)
    assert Purchase.objects.get().status == "paid"


def test_a_customer_that_stripe_no_longer_has_pauses_it(
    double: DoubleAccount, payer: Payer, consent: Consent
) -> None:
    consent()
    Customer.objects.update(deleted_at=double.now())
    assert run(double) == 0
    assert AutoTopUp.objects.get().paused_reason == "payment-method-required"
    assert not Purchase.objects.exists()


def test_the_reason_that_paused_it_first_stays(double: DoubleAccount, consent: Consent) -> None:
    given = consent()
    top_ups.pause(given, AutoTopUp.PausedReason.CARD_DECLINED, now=double.now(), decline_code="x" * 99)
    top_ups.pause(given, AutoTopUp.PausedReason.PACK_CHANGED, now=double.now() + AGAIN)
    left = AutoTopUp.objects.get()
    assert (left.paused_reason, left.decline_code) == ("card-declined", "x" * 64)


def _withdraw(payer: Payer) -> None:
    top_ups.withdraw(user=payer.user, now=payer.account.now())


def _pause(payer: Payer) -> None:
    top_ups.pause(AutoTopUp.objects.get(), AutoTopUp.PausedReason.PACK_CHANGED, now=payer.account.now())


@pytest.mark.parametrize(("end", "has_card"), [(_withdraw, False), (_pause, True)])
def test_a_consent_ended_before_a_worker_resumes_pays_nothing_and_keeps_its_reason(
    double: DoubleAccount, payer: Payer, consent: Consent, end: Callable[[Payer], None], has_card: bool
) -> None:
    consent()
    with killed_before("create_purchase"):
        run(double)
    end(payer)
    before = AutoTopUp.objects.get().paused_reason
    if not has_card:
        (card,) = double.v1.payment_methods.list({"customer": payer.customer.stripe_customer_id}).data
        double.v1.payment_methods.detach(card.id)
    assert run(double, after=timedelta(minutes=2)) == 0
    assert (Purchase.objects.get().status, AutoTopUp.objects.get().paused_reason) == ("void", before)
    assert double.v1.invoices.list().data == []


def test_a_purchase_that_is_paid_just_before_it_is_given_up_has_not_failed(
    double: DoubleAccount, payer: Payer, consent: Consent
) -> None:
    consent()
    customer = payer.customer.stripe_customer_id
    double.capture(customer, DECLINES)

    with fault_injection() as client:

        def pay() -> None:
            double.capture(customer, VISA)
            client.real.has_payment_method(customer_id=customer)
            client.real.pay_invoice(invoice_id=Purchase.objects.get().stripe_invoice_id)

        client.before["void_invoice"] = once(pay)
        assert run(double) == 1
    bought = Purchase.objects.get()
    assert (bought.status, bought.failure_code) == ("paid", "")


def test_an_automatic_purchase_is_left_to_the_top_up(double: DoubleAccount, consent: Consent) -> None:
    consent()
    with killed_before("create_purchase"):
        run(double)
    assert purchases.close_unpaid(now=double.now() + 2 * purchases.PAYABLE_FOR) == 0
    assert Purchase.objects.get().status == "open"


def test_without_a_rate_there_is_no_consent(double: DoubleAccount, consent: Consent) -> None:
    rewrite(PayoutRate.objects.filter(currency="usd"), valid_from=double.now() + timedelta(days=99))
    with pytest.raises(RateMissing):
        consent()
    assert not AutoTopUp.objects.exists()


@pytest.mark.parametrize(
    "change",
    [
        {"threshold": 0},
        {"monthly_limit_minor": PRICE - 1},
        {"consent": ""},
        {"paused_reason": "card-declined"},
        {"paused_at": datetime(2030, 1, 1, tzinfo=UTC)},
    ],
)
def test_the_database_refuses_terms_that_cannot_be(consent: Consent, change: dict[str, Any]) -> None:
    given = consent()
    with pytest.raises(IntegrityError), transaction.atomic():
        AutoTopUp.objects.filter(pk=given.pk).update(**change)


def test_the_database_refuses_a_second_consent_in_force(consent: Consent) -> None:
    given = consent()
    given.pk = None
    with pytest.raises(IntegrityError), transaction.atomic():
        given.save(force_insert=True)


def test_money_that_waits_for_a_rate_is_paid_out_once_there_is_one(
    double: DoubleAccount, payer: Payer, consent: Consent, rates: dict[str, int]
) -> None:
    consent()
    usd = PayoutRate.objects.filter(currency="usd")
    began = usd.get().valid_from
    rewrite(usd, valid_from=double.now() + timedelta(days=99))
    assert run(double) == 0
    assert (Purchase.objects.get().status, AutoTopUp.objects.get().paused_at) == ("open", None)
    rewrite(usd, valid_from=began)
    assert run(double, after=timedelta(minutes=2)) == 1
    assert payer.balance == PRICE * rates["usd"] // 100


def test_a_balance_at_stripe_pauses_it_and_nothing_is_bought(
    double: DoubleAccount, payer: Payer, consent: Consent
) -> None:
    consent()
    double.v1.customers.update(payer.customer.stripe_customer_id, {"balance": -PRICE})
    with double.frozen_log() as commands:
        assert [run(double), run(double, after=AGAIN)] == [0, 0]
    assert (AutoTopUp.objects.get().paused_reason, Purchase.objects.get().status) == (
        "billing-refused",
        "void",
    )
    assert commands == []
