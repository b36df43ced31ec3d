"""How every billing client charges for purchases and returns money, on the fake and on the double."""

import secrets
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from payments.errors import BillingRefused
from payments.stripe.client import SubscriptionState
from tests.payments.stripe.conftest import Begin, Key
from tests.payments.stripe_accounts import DECLINES, NEEDS_CONFIRMATION, SeamCase

_MONTH = 32 * 86_400
_DAY = timedelta(days=1)


class TestPurchases:
    def test_a_key_creates_one_invoice_that_is_collected_when_it_is_paid(
        self, seam: SeamCase, customer_id: str, key: Key, amount: int
    ) -> None:
        seam.account.capture(customer_id)
        assert seam.client.has_payment_method(customer_id=customer_id)
        wanted: dict[str, Any] = {
            "customer_id": customer_id,
            "amount_minor": amount,
            "currency": "eur",
            "key": key(),
        }
        invoice_id = seam.client.create_purchase(**wanted)
        assert seam.client.create_purchase(**wanted) == invoice_id
        with pytest.raises(BillingRefused):
            seam.client.create_purchase(**{**wanted, "amount_minor": amount + 1})
        draft = seam.client.retrieve_invoice(invoice_id=invoice_id)
        assert (draft.is_ours, draft.subscription_id, draft.period_start) == (True, "", None)
        assert (draft.status, draft.collected_minor, draft.operation) == ("draft", 0, wanted["key"])
        seam.account.pass_time(_MONTH)
        assert seam.client.retrieve_invoice(invoice_id=invoice_id).status == "draft"
        for _ in range(2):
            seam.client.pay_invoice(invoice_id=invoice_id)
        paid = seam.client.retrieve_invoice(invoice_id=invoice_id)
        assert (paid.status, paid.collected_minor, paid.currency) == ("paid", amount, "eur")
        assert invoice_id in {
            row.invoice_id for row in seam.client.paid_invoices_since(since=seam.account.now() - _DAY)
        }
        seam.client.void_invoice(invoice_id=invoice_id)
        assert seam.client.retrieve_invoice(invoice_id=invoice_id) == paid

    def test_the_invoice_of_a_key_is_found_days_later_and_is_billed_once(
        self, seam: SeamCase, customer_id: str, key: Key, amount: int
    ) -> None:
        seam.account.capture(customer_id)
        assert seam.client.has_payment_method(customer_id=customer_id)
        create = partial(
            seam.client.create_purchase,
            customer_id=customer_id,
            amount_minor=amount,
            currency="usd",
            key=key(),
        )
        invoice_id = create()
        other = seam.client.create_purchase(
            customer_id=customer_id, amount_minor=amount, currency="usd", key=key(), has_expired_key=True
        )
        assert other != invoice_id
        seam.account.pass_time(2 * 86_400)  # Stripe has forgotten the key by then.
        assert create(has_expired_key=True) == invoice_id
        seam.client.pay_invoice(invoice_id=invoice_id)
        paid = seam.client.retrieve_invoice(invoice_id=invoice_id)
        assert (paid.status, paid.collected_minor) == ("paid", amount)
        assert create(has_expired_key=True) == invoice_id

    @pytest.mark.parametrize("card", [DECLINES, NEEDS_CONFIRMATION])
    def test_an_unpaid_invoice_shows_what_it_awaits_until_it_is_void(
        self, seam: SeamCase, customer_id: str, key: Key, amount: int, card: str
    ) -> None:
        seam.account.capture(customer_id, card)
        assert seam.client.has_payment_method(customer_id=customer_id)
        invoice_id = seam.client.create_purchase(
            customer_id=customer_id, amount_minor=amount, currency="usd", key=key()
        )
        seam.client.pay_invoice(invoice_id=invoice_id)
        waits = seam.client.open_payment(invoice_id=invoice_id)
        assert (bool(waits.client_secret), bool(waits.decline_code)) == (card != DECLINES, card == DECLINES)
        for _ in range(2):
            seam.client.void_invoice(invoice_id=invoice_id)
        assert seam.client.retrieve_invoice(invoice_id=invoice_id).status == "void"

    def test_a_voided_draft_is_deleted(self, seam: SeamCase, customer_id: str, key: Key, amount: int) -> None:
        invoice_id = seam.client.create_purchase(
            customer_id=customer_id, amount_minor=amount, currency="usd", key=key()
        )
        for _ in range(2):
            seam.client.void_invoice(invoice_id=invoice_id)
        with pytest.raises(BillingRefused):
            seam.client.retrieve_invoice(invoice_id=invoice_id)


class TestReturnedMoney:
    def test_refunds_that_did_not_fail_and_withdrawn_sums_are_returned_money(
        self, seam: SeamCase, begin: Begin, amount: int
    ) -> None:
        payment = self._payment(seam, begin())
        assert self._returned(seam, payment) == (0, 0)
        refund = seam.account.refund(payment, amount // 3)
        kept = seam.account.refund(payment, amount // 5)
        assert self._returned(seam, payment) == (amount // 3 + amount // 5, 0)
        seam.account.fail_refund(refund)
        assert self._returned(seam, payment) == (amount // 5, 0)
        ((failed, reason),) = seam.client.returned_money(payment_intent_id=payment).failed_refunds
        assert (failed, bool(reason)) == (refund, True)
        dispute = seam.account.dispute(payment, withdraw=False)
        assert self._returned(seam, payment) == (amount // 5, 0)
        seam.account.withdraw(dispute)
        assert self._returned(seam, payment) == (amount // 5, amount - amount // 5)
        seam.account.reinstate(dispute)
        assert self._returned(seam, payment) == (amount // 5, 0)
        for object_id in (refund, kept, dispute):
            assert seam.client.payment_intent_of(object_id=object_id) == payment

    def test_every_movement_of_a_payment_is_a_balance_transaction(
        self, seam: SeamCase, begin: Begin, amount: int
    ) -> None:
        began = seam.account.now() - timedelta(hours=1)
        payment = self._payment(seam, begin())
        seam.account.fail_refund(seam.account.refund(payment, amount // 3))
        seam.account.refund(payment, amount // 5)
        dispute = seam.account.dispute(payment)
        seam.account.reinstate(dispute)

        read = seam.client.balance_transactions(since=began, until=seam.account.now() + timedelta(hours=1))
        ours = [row for row in read if row.payment_intent_id == payment]

        left = amount - amount // 5
        assert [row.charged_minor for row in ours] == [
            left, -left, -(amount // 5), amount // 3, -(amount // 3), amount
        ]  # fmt: skip
        assert {row.category for row in ours} == {
            "charge", "refund", "refund_failure", "dispute", "dispute_reversal"
        }  # fmt: skip
        assert all(row.net_minor == row.amount_minor - row.fee_minor for row in ours)
        assert ours[-1].fee_minor > 0
        assert not list(seam.client.balance_transactions(since=began - timedelta(days=9), until=began))

    def test_a_key_returns_money_once_and_no_more_than_is_left(
        self, seam: SeamCase, begin: Begin, amount: int, key: Key
    ) -> None:
        payment, first = self._payment(seam, begin()), key()
        refund = partial(seam.client.create_refund, payment_intent_id=payment)
        made = refund(amount_minor=amount // 3, key=first)
        seam.account.pass_time(2 * 86_400)  # Stripe has forgotten the key by then.
        assert refund(amount_minor=amount // 3, key=first) == made
        assert seam.client.payment_intent_of(object_id=made) == payment
        assert self._returned(seam, payment) == (amount // 3, 0)
        with pytest.raises(BillingRefused):
            refund(amount_minor=amount - amount // 3 + 1, key=key())
        assert refund(amount_minor=amount - amount // 3, key=key()) != made
        with pytest.raises(BillingRefused):
            refund(amount_minor=1, key=key())
        assert self._returned(seam, payment) == (amount, 0)

    def test_other_objects_have_no_payment_intent(self, seam: SeamCase) -> None:
        assert seam.client.payment_intent_of(object_id=f"txn_{secrets.token_hex(8)}") == ""

    @staticmethod
    def _payment(seam: SeamCase, made: SubscriptionState) -> str:
        return seam.client.retrieve_invoice(invoice_id=made.latest_invoice_id).payment_intent_id

    @staticmethod
    def _returned(seam: SeamCase, payment: str) -> tuple[int, int]:
        returned = seam.client.returned_money(payment_intent_id=payment)
        return returned.refunded_minor, returned.disputed_minor
