"""Purchases of credits: charged once, paid out once, and taken back with returned money."""

import random
import secrets
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from credits.models import Allowance, CreditEntry
from gateway.common.errors import DomainError
from payments.errors import (
    AmountTooSmall,
    AuthenticationRequired,
    BillingInProgress,
    CardDeclined,
    CustomerBalanceLeft,
    PaymentMethodRequired,
    PurchaseClosed,
    PurchaseDiffers,
    RateMissing,
)
from payments.models import CreditPack, PayoutRate, Purchase
from payments.services import deletion, purchases
from payments.services.reconciliation import repairs
from payments.stripe import set_billing_client
from portal.dashboard import dashboard_of
from rewards.models import ExperienceEntry
from tests.database import erase
from tests.payments.buying import buy, new_pack, order_of
from tests.payments.conftest import Refused
from tests.payments.faults import fault_injection, killed_after, killed_before, once
from tests.payments.payers import Payer
from tests.payments.reconciling import assert_no_findings
from tests.payments.rows import all_rows
from tests.payments.stripe_accounts import DECLINES, NEEDS_CONFIRMATION, VISA, DoubleAccount
from tests.payments.webhook_events import process_all_events
from tests.threads import at_once

pytestmark = pytest.mark.django_db
DAY = timedelta(days=1)


@pytest.fixture
def pack(rates: dict[str, int]) -> CreditPack:
    return new_pack()


@pytest.fixture
def key() -> str:
    return secrets.token_hex(16)


def _worth(pack: CreditPack, rates: dict[str, int]) -> int:
    return pack.amount_minor * rates[pack.currency] // 100 + pack.bonus_credits


def _charged(double: DoubleAccount) -> list[int]:
    return [charge.amount for charge in double.v1.charges.list({"limit": 100}).data if charge.paid]


def _experience(payer: Payer, track: str) -> list[int]:
    rows = ExperienceEntry.objects.filter(progress__user=payer.user, track=track)
    return list(rows.order_by("pk").values_list("amount", flat=True))


def test_a_pack_gives_the_credits_of_its_price_and_its_bonus_at_once_and_once(
    double: DoubleAccount, payer: Payer, pack: CreditPack, rates: dict[str, int], key: str
) -> None:
    for _ in range(3):
        assert buy(payer, pack, key).status == "paid"
        assert _charged(double) == [pack.amount_minor]
        entry = CreditEntry.objects.get()
        assert (entry.source, entry.amount) == ("CREDIT_PURCHASE", _worth(pack, rates))
        process_all_events(double)
    (payout,) = payer.purchases
    assert (payout.amount_minor, payout.bonus_credits, payout.period_end) == (
        pack.amount_minor,
        pack.bonus_credits,
        None,
    )
    assert repairs.pay_out_missed_invoices(now=double.now()) == 0
    assert_no_findings(double)


def test_an_amount_is_sold_at_the_rate_of_a_subscription(
    double: DoubleAccount, payer: Payer, amount: int, rates: dict[str, int]
) -> None:
    for number in range(1, 3):
        assert buy(payer, amount).pack is None
        assert payer.balance == number * (amount * rates["usd"] // 100)
    assert _charged(double) == [amount, amount]


def test_a_purchase_leaves_the_subscription_and_its_period_alone(
    double: DoubleAccount, payer: Payer, pack: CreditPack, amount: int
) -> None:
    def shown() -> tuple[object, ...]:
        quota, dashboard = payer.quota(), dashboard_of(user=payer.user, now=double.now())
        return (
            quota.total,
            quota.reset_date,
            dashboard.rewards.is_subscriber,
            dashboard.subscription_amount,
            sum(_experience(payer, "SUBSCRIBER")),
        )

    before = shown()
    assert before[:3] == (0, -1, False)
    buy(payer, pack)
    process_all_events(double)
    assert shown() == before
    assert not Allowance.objects.exists()
    payer.upsert(amount)
    process_all_events(double)
    subscribed = shown()
    buy(payer, pack)
    double.refund(payer.purchases[-1].stripe_payment_intent_id)
    process_all_events(double)
    assert shown() == subscribed
    assert_no_findings(double)


@pytest.mark.parametrize("card", [DECLINES, NEEDS_CONFIRMATION])
def test_a_failed_card_is_reported_and_the_same_key_continues(
    double: DoubleAccount, payer: Payer, pack: CreditPack, rates: dict[str, int], key: str, card: str
) -> None:
    double.capture(payer.customer.stripe_customer_id, card)
    kind = CardDeclined if card == DECLINES else AuthenticationRequired
    for _ in range(2):
        with pytest.raises(kind) as refusal:
            buy(payer, pack, key)
        process_all_events(double)
        assert payer.balance == 0
    if card == DECLINES:
        assert refusal.value.members["declineCode"]
        double.capture(payer.customer.stripe_customer_id, VISA)
    else:
        double.confirm(refusal.value.members["clientSecret"])
    if card == NEEDS_CONFIRMATION and random.random() < 0.5:
        process_all_events(double)  # The caller does not repeat the request.
    else:
        assert buy(payer, pack, key).status == "paid"
    assert (payer.balance, _charged(double)) == (_worth(pack, rates), [pack.amount_minor])
    assert buy(payer, pack, key).status == "paid"
    assert len(double.v1.invoices.list().data) == 1


def test_without_a_card_nothing_is_ordered(double: DoubleAccount, payer: Payer, pack: CreditPack) -> None:
    (card,) = double.v1.payment_methods.list({"customer": payer.customer.stripe_customer_id}).data
    double.v1.payment_methods.detach(card.id)
    with pytest.raises(PaymentMethodRequired):
        buy(payer, pack)
    assert not Purchase.objects.exists()
    assert double.v1.invoices.list().data == []


def test_a_purchase_without_credits_is_refused_before_a_charge(
    double: DoubleAccount, payer: Payer, pack: CreditPack, refused: Refused
) -> None:
    with refused(AmountTooSmall):
        buy(payer, 49)
    erase(PayoutRate.objects.filter(currency="usd"))
    with refused(RateMissing):
        buy(payer, pack)


def test_a_key_of_another_purchase_is_refused(
    double: DoubleAccount, payer: Payer, pack: CreditPack, amount: int, key: str, refused: Refused
) -> None:
    buy(payer, pack, key)
    for other in (amount + 5_000, new_pack()):
        with refused(PurchaseDiffers):
            buy(payer, other, key)


@pytest.mark.parametrize(
    ("method", "at", "healed_by"),
    [
        ("create_purchase", killed_before, "repeat"),
        ("create_purchase", killed_after, "repeat"),
        ("pay_invoice", killed_before, "repeat"),
        ("pay_invoice", killed_before, "webhook"),
        ("pay_invoice", killed_before, "catch-up"),
        ("pay_invoice", killed_after, "repeat"),
        ("pay_invoice", killed_after, "webhook"),
        ("pay_invoice", killed_after, "catch-up"),
        ("retrieve_invoice", killed_after, "repeat"),
    ],
)
def test_a_crash_charges_once_and_loses_nothing(
    double: DoubleAccount,
    payer: Payer,
    pack: CreditPack,
    rates: dict[str, int],
    key: str,
    method: str,
    at: Callable[..., object],
    healed_by: str,
) -> None:
    with at(method):  # type: ignore[attr-defined]
        buy(payer, pack, key)
    was_paid = _charged(double) == [pack.amount_minor]
    if healed_by == "repeat":
        assert buy(payer, pack, key).status == "paid"
    elif healed_by == "webhook":
        process_all_events(double)
    else:
        repairs.pay_out_missed_invoices(now=double.now())
    is_healed = was_paid or healed_by == "repeat"
    assert _charged(double) == [pack.amount_minor] * is_healed
    assert payer.balance == _worth(pack, rates) * is_healed
    assert Purchase.objects.get().status == ("paid" if is_healed else "open")
    assert purchases.close_unpaid(now=double.now() + DAY) == (not is_healed)
    assert Purchase.objects.get().status == ("paid" if is_healed else "void")
    assert [row.status for row in double.v1.invoices.list().data] in ([], ["paid"] if is_healed else ["void"])
    assert_no_findings(double)


def test_an_unpaid_purchase_is_voided_after_a_day_and_its_key_is_closed(
    double: DoubleAccount, payer: Payer, pack: CreditPack, key: str
) -> None:
    double.capture(payer.customer.stripe_customer_id, NEEDS_CONFIRMATION)
    with pytest.raises(AuthenticationRequired) as refusal:
        buy(payer, pack, key)
    assert purchases.close_unpaid(now=double.now()) == 0
    assert purchases.close_unpaid(now=double.now() + DAY) == 1
    intent = double.v1.payment_intents.retrieve(refusal.value.members["clientSecret"].split("_secret")[0])
    assert intent.status == "canceled"
    double.capture(payer.customer.stripe_customer_id, VISA)
    with pytest.raises(PurchaseClosed):
        buy(payer, pack, key)
    assert (payer.balance, _charged(double)) == (0, [])


def test_a_draft_without_a_response_is_deleted_after_stripe_forgets_the_key(
    double: DoubleAccount, payer: Payer, pack: CreditPack, key: str
) -> None:
    with killed_after("create_purchase"):
        buy(payer, pack, key)
    assert [row.status for row in double.v1.invoices.list().data] == ["draft"]
    double.pass_time(2 * 86_400)
    assert purchases.close_unpaid(now=double.now()) == 1
    assert (Purchase.objects.get().status, double.v1.invoices.list().data, _charged(double)) == (
        "void",
        [],
        [],
    )


def test_a_new_key_replaces_an_unpaid_purchase(
    double: DoubleAccount, payer: Payer, pack: CreditPack, amount: int, key: str, rates: dict[str, int]
) -> None:
    double.capture(payer.customer.stripe_customer_id, NEEDS_CONFIRMATION)
    with pytest.raises(AuthenticationRequired):
        buy(payer, pack, key)
    double.capture(payer.customer.stripe_customer_id, VISA)
    assert buy(payer, amount).status == "paid"
    process_all_events(double)
    assert (payer.balance, _charged(double)) == (amount * rates["usd"] // 100, [amount])
    with pytest.raises(PurchaseClosed):
        buy(payer, pack, key)


def test_a_new_key_is_refused_once_if_the_earlier_purchase_was_just_paid(
    double: DoubleAccount, payer: Payer, pack: CreditPack, rates: dict[str, int]
) -> None:
    double.capture(payer.customer.stripe_customer_id, NEEDS_CONFIRMATION)
    with pytest.raises(AuthenticationRequired) as refusal:
        buy(payer, pack)
    double.confirm(refusal.value.members["clientSecret"])
    double.capture(payer.customer.stripe_customer_id, VISA)
    second = secrets.token_hex(8)
    with pytest.raises(BillingInProgress):
        buy(payer, pack, second)
    assert (payer.balance, _charged(double)) == (_worth(pack, rates), [pack.amount_minor])
    assert buy(payer, pack, second).status == "paid"
    assert len(_charged(double)) == 2


@pytest.mark.parametrize("how", ["refund", "dispute", "lost webhook"])
def test_returned_money_takes_the_same_share_of_price_and_bonus_back(
    double: DoubleAccount, payer: Payer, pack: CreditPack, rates: dict[str, int], how: str
) -> None:
    buy(payer, pack)
    (payout,) = payer.purchases
    part = random.randint(1, pack.amount_minor)
    if how == "dispute":
        double.dispute(payout.stripe_payment_intent_id, part)
    else:
        double.refund(payout.stripe_payment_intent_id, part)
    if how == "lost webhook":
        repairs.claw_back_missed_money(now=double.now())
    else:
        process_all_events(double)
    worth = _worth(pack, rates)
    assert payer.balance == worth - worth * part // pack.amount_minor
    assert_no_findings(double)


def test_an_invoice_for_our_product_that_staff_made_is_a_purchase(
    double: DoubleAccount, payer: Payer, rates: dict[str, int], settings: Any
) -> None:
    process_all_events(double)  # The card becomes the default.
    customer = payer.customer.stripe_customer_id
    product = settings.STRIPE_PRODUCT_ID
    double.controls.create_invoice(customer, 900, product=product)
    double.controls.create_invoice(customer, 700)
    process_all_events(double)
    assert payer.balance == 900 * rates["usd"] // 100
    made = Purchase.objects.get()
    assert (made.amount_minor, made.idempotency_key, made.status) == (900, "", "paid")
    assert_no_findings(double)


def test_tax_is_inside_the_price_and_gives_no_credits_but_the_whole_bonus(
    double: DoubleAccount, payer: Payer, pack: CreditPack, rates: dict[str, int], settings: Any
) -> None:
    settings.STRIPE_AUTOMATIC_TAX = True
    set_billing_client(None)
    double.v1.customers.update(payer.customer.stripe_customer_id, {"address": {"country": "DE"}})
    buy(payer, pack)
    (payout,) = payer.purchases
    assert payout.amount_minor + payout.tax_minor == pack.amount_minor == _charged(double)[0]
    assert payout.tax_minor > 0
    assert payer.balance == payout.amount_minor * rates["usd"] // 100 + pack.bonus_credits
    assert_no_findings(double)


def test_deleting_the_account_voids_unpaid_purchases(
    double: DoubleAccount, payer: Payer, pack: CreditPack
) -> None:
    double.capture(payer.customer.stripe_customer_id, NEEDS_CONFIRMATION)
    with pytest.raises(AuthenticationRequired):
        buy(payer, pack)
    deletion.leave_stripe(payer.user, double.now())
    assert [row.status for row in double.v1.invoices.list().data] == ["void"]
    assert Purchase.objects.get().status == "void"


def test_a_customer_deleted_at_stripe_is_replaced(
    double: DoubleAccount, payer: Payer, pack: CreditPack, rates: dict[str, int]
) -> None:
    double.delete_customer(payer.customer.stripe_customer_id)
    with pytest.raises(PaymentMethodRequired):
        buy(payer, pack)
    payer.with_card()
    assert buy(payer, pack).status == "paid"
    assert payer.balance == _worth(pack, rates)


def test_a_change_between_reads_is_not_applied_twice(
    double: DoubleAccount, payer: Payer, pack: CreditPack, rates: dict[str, int]
) -> None:
    with fault_injection() as client:
        client.after["retrieve_invoice"] = once(lambda: process_all_events(double))
        buy(payer, pack)
    assert payer.balance == _worth(pack, rates)
    before = all_rows()
    process_all_events(double)
    assert all_rows()["CreditEntry"] == before["CreditEntry"]


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("impatient")
def test_many_equal_requests_charge_once(
    double: DoubleAccount, payer: Payer, pack: CreditPack, rates: dict[str, int], key: str
) -> None:
    call = partial(purchases.buy, user=payer.user, order=order_of(pack), key=key, now=double.now())
    results = at_once([call] * 16)
    paid = [result for result in results if isinstance(result, Purchase)]
    assert {result.pk for result in paid} == {Purchase.objects.get().pk}
    assert all(result.retry_after for result in results if isinstance(result, DomainError))
    assert (payer.balance, _charged(double)) == (_worth(pack, rates), [pack.amount_minor])
    assert len(double.v1.invoices.list().data) == 1


@pytest.mark.parametrize("balance", [-100, -10_000, 300])
def test_a_balance_at_stripe_is_not_mixed_with_a_purchase(
    double: DoubleAccount, payer: Payer, pack: CreditPack, key: str, balance: int
) -> None:
    customer = payer.customer.stripe_customer_id
    buy(payer, pack)
    double.v1.customers.update(customer, {"balance": balance})
    with double.frozen_log() as commands, pytest.raises(CustomerBalanceLeft) as refusal:
        buy(payer, pack, key)
    assert (refusal.value.members["balance"], refusal.value.members["currency"]) == (balance, "usd")
    assert commands == []
    assert Purchase.objects.get(idempotency_key=key).status == "void"
    assert len(_charged(double)) == len(payer.purchases) == 1

    double.v1.customers.update(customer, {"balance": 0})
    assert buy(payer, pack).status == "paid"
    assert _charged(double) == [pack.amount_minor] * 2
