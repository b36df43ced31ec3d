"""The contract of every billing client, run on the fake and on the double."""

import json
import secrets
import time
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.conf import settings

from payments.errors import BillingRefused, PaymentMethodRequired, WebhookRefused
from payments.stripe.client import SubscriptionState
from tests.payments.stripe_accounts import DECLINES, NEEDS_CONFIRMATION, VISA, SeamCase
from tests.payments.webhook_events import signature

_MONTH = 32 * 86_400
_HOUR = 3_600
_DAY = timedelta(days=1)
Key = Callable[[], str]


@pytest.fixture
def begin(seam: SeamCase, customer_id: str, key: Key, amount: int) -> Callable[..., SubscriptionState]:
    """Return a function that captures a card and creates a subscription with it."""

    def run(card: str = VISA, **changes: Any) -> SubscriptionState:
        seam.account.capture(customer_id, card)
        assert seam.client.has_payment_method(customer_id=customer_id)
        wanted = {
            "customer_id": customer_id,
            "amount_minor": amount,
            "currency": "usd",
            "cancels_at_period_end": False,
            "key": key(),
        }
        return seam.client.create_subscription(**{**wanted, **changes})

    return run


class TestCustomers:
    def test_a_key_creates_one_customer(self, seam: SeamCase, key: Key) -> None:
        owner = {"profile_address": "0x" + secrets.token_hex(20), "user_id": "7"}
        first, again = key(), key()
        made = seam.client.create_customer(**owner, key=first)
        assert seam.client.create_customer(**owner, key=first) == made
        assert seam.client.create_customer(**owner, key=again) != made

    def test_a_key_is_refused_to_other_content(self, seam: SeamCase, key: Key) -> None:
        first = key()
        seam.client.create_customer(profile_address="0x1", user_id="1", key=first)
        with pytest.raises(BillingRefused):
            seam.client.create_customer(profile_address="0x2", user_id="1", key=first)

    def test_a_setup_intent_has_a_secret_of_its_own(self, seam: SeamCase, customer_id: str) -> None:
        secret, other = (seam.client.create_setup_intent(customer_id=customer_id) for _ in range(2))
        assert secret.startswith("seti_")
        assert "_secret_" in secret
        assert secret != other
        unfinished = secret.split("_secret_")[0]
        assert seam.client.payment_method_of_setup(setup_intent_id=unfinished) == (customer_id, "")

    def test_a_captured_card_is_a_payment_method(self, seam: SeamCase, customer_id: str) -> None:
        assert not seam.client.has_payment_method(customer_id=customer_id)
        intent = seam.account.capture(customer_id)
        assert seam.client.has_payment_method(customer_id=customer_id)
        owner, method = seam.client.payment_method_of_setup(setup_intent_id=intent)
        assert (owner, method[:3]) == (customer_id, "pm_")

    def test_an_address_for_receipts_is_kept_and_forgotten(self, seam: SeamCase, customer_id: str) -> None:
        for email in ("a@wallet.example", "b@wallet.example", ""):
            seam.client.set_receipt_email(customer_id=customer_id, email=email)
            assert seam.client.receipt_email(customer_id=customer_id) == email

    def test_hosted_pages_have_addresses_of_their_own(self, seam: SeamCase, customer_id: str) -> None:
        make = (seam.client.create_card_page, seam.client.create_portal_page)
        urls = [page(customer_id=customer_id, return_url="https://wallet.example") for page in make * 2]
        assert len(set(urls)) == 4

    def test_a_deleted_customer_is_known_as_such_and_refused(self, seam: SeamCase, customer_id: str) -> None:
        assert not seam.client.is_customer_deleted(customer_id=customer_id)
        seam.account.delete_customer(customer_id)
        assert seam.client.is_customer_deleted(customer_id=customer_id)
        for ask in (seam.client.create_setup_intent, seam.client.has_payment_method):
            with pytest.raises(BillingRefused):
                ask(customer_id=customer_id)

    def test_a_customer_is_deleted_once_and_again(self, seam: SeamCase, customer_id: str) -> None:
        for _ in range(2):
            seam.client.delete_customer(customer_id=customer_id)
            assert seam.client.is_customer_deleted(customer_id=customer_id)

    def test_a_customer_that_never_was_is_not_deleted(self, seam: SeamCase) -> None:
        with pytest.raises(BillingRefused):
            seam.client.is_customer_deleted(customer_id=f"cus_{secrets.token_hex(7)}")


class TestCreatingSubscriptions:
    def test_a_subscription_is_paid_and_lasts_a_month(
        self, seam: SeamCase, begin: Callable[..., SubscriptionState], customer_id: str, amount: int
    ) -> None:
        made = begin()
        assert (made.status, made.customer_id) == ("active", customer_id)
        assert (made.amount_minor, made.currency) == (amount, "usd")
        assert (made.cancels_at_period_end, made.ended_at) == (False, None)
        assert (made.payment_client_secret, made.decline_code) == ("", "")
        assert timedelta(days=28) <= made.current_period_end - made.current_period_start <= timedelta(days=31)
        invoice = seam.client.retrieve_invoice(invoice_id=made.latest_invoice_id)
        assert (invoice.status, invoice.billing_reason) == ("paid", "subscription_create")
        assert (invoice.collected_minor, invoice.currency, invoice.is_live) == (amount, "usd", False)
        assert (invoice.subscription_id, invoice.customer_id) == (made.subscription_id, customer_id)
        assert (invoice.period_start, invoice.period_end) == (
            made.current_period_start,
            made.current_period_end,
        )
        assert invoice.payment_intent_id.startswith("pi_")
        assert invoice.paid_at is not None

    def test_a_key_creates_one_subscription_and_answers_its_current_state(
        self, seam: SeamCase, begin: Callable[..., SubscriptionState], key: Key, customer_id: str
    ) -> None:
        first = key()
        made = begin(key=first)
        assert begin(key=first) == made
        seam.client.cancel_subscription(subscription_id=made.subscription_id, key=key())
        assert begin(key=first).status == "canceled"
        assert len(seam.client.list_subscriptions(customer_id=customer_id)) == 1

    def test_without_a_card_no_subscription_is_created(
        self, seam: SeamCase, customer_id: str, key: Key
    ) -> None:
        with pytest.raises(PaymentMethodRequired):
            seam.client.create_subscription(
                customer_id=customer_id,
                amount_minor=900,
                currency="usd",
                cancels_at_period_end=False,
                key=key(),
            )
        assert seam.client.list_subscriptions(customer_id=customer_id) == []

    def test_an_unknown_customer_is_refused(self, seam: SeamCase, begin: Callable[..., Any]) -> None:
        with pytest.raises(BillingRefused):
            begin(customer_id=f"cus_{secrets.token_hex(7)}")

    def test_a_declined_card_leaves_it_incomplete(self, begin: Callable[..., SubscriptionState]) -> None:
        made = begin(DECLINES)
        assert (made.status, made.decline_code) == ("incomplete", "generic_decline")
        assert made.payment_client_secret == ""

    def test_a_card_that_needs_confirmation_waits_for_its_holder(
        self, seam: SeamCase, begin: Callable[..., SubscriptionState], amount: int
    ) -> None:
        made = begin(NEEDS_CONFIRMATION)
        assert (made.status, made.decline_code) == ("incomplete", "")
        seam.account.confirm(made.payment_client_secret)
        active = seam.client.retrieve_subscription(subscription_id=made.subscription_id)
        assert (active.status, active.payment_client_secret) == ("active", "")
        invoice = seam.client.retrieve_invoice(invoice_id=made.latest_invoice_id)
        assert (invoice.status, invoice.collected_minor) == ("paid", amount)

    @pytest.mark.parametrize("cents", [1, 49])
    def test_an_amount_below_the_minimum_charge_is_paid_without_a_payment(
        self, seam: SeamCase, begin: Callable[..., SubscriptionState], cents: int
    ) -> None:
        made = begin(amount_minor=cents)
        invoice = seam.client.retrieve_invoice(invoice_id=made.latest_invoice_id)
        assert (invoice.status, invoice.collected_minor, invoice.payment_intent_id) == ("paid", 0, "")


class TestOpenInvoices:
    def test_another_card_pays_the_open_invoice(
        self, seam: SeamCase, begin: Callable[..., SubscriptionState], customer_id: str
    ) -> None:
        made = begin(DECLINES)
        seam.client.pay_invoice(invoice_id=made.latest_invoice_id)
        declined = seam.client.retrieve_subscription(subscription_id=made.subscription_id)
        assert (declined.status, declined.decline_code) == ("incomplete", "generic_decline")
        seam.account.capture(customer_id)
        seam.client.use_newest_card(customer_id=customer_id)
        for _ in range(2):
            seam.client.pay_invoice(invoice_id=made.latest_invoice_id)
            paid = seam.client.retrieve_subscription(subscription_id=made.subscription_id)
            assert paid.status == "active"
        invoice = seam.client.retrieve_invoice(invoice_id=made.latest_invoice_id)
        assert (invoice.status, invoice.collected_minor) == ("paid", made.amount_minor)

    def test_money_paid_outside_of_stripe_is_not_collected(
        self, seam: SeamCase, begin: Callable[..., SubscriptionState]
    ) -> None:
        made = begin(DECLINES)
        seam.account.pay_out_of_band(made.latest_invoice_id)
        invoice = seam.client.retrieve_invoice(invoice_id=made.latest_invoice_id)
        assert (invoice.status, invoice.collected_minor) == ("paid", 0)

    def test_invoices_are_summed_up_page_by_page(
        self, seam: SeamCase, begin: Callable[..., SubscriptionState], customer_id: str
    ) -> None:
        made = begin()
        seam.account.pass_time(_MONTH)
        first = seam.client.invoices(customer_id=customer_id, limit=1, after="")
        second = seam.client.invoices(customer_id=customer_id, limit=1, after=first.last_id)
        assert (first.has_more, second.has_more) == (True, False)
        (oldest,) = second.invoices
        assert (oldest.invoice_id, oldest.status, oldest.total_minor) == (
            made.latest_invoice_id,
            "paid",
            made.amount_minor,
        )
        assert oldest.page_url.startswith("http")
        assert oldest.pdf_url.startswith("http")

    def test_an_old_invoice_that_is_paid_now_is_read_among_the_new(
        self, seam: SeamCase, begin: Callable[..., SubscriptionState], customer_id: str
    ) -> None:
        made = begin(DECLINES)
        seam.account.pass_time(_HOUR)
        since = seam.account.now()
        assert list(seam.client.paid_invoices_since(since=since)) == []
        seam.account.capture(customer_id)
        seam.client.use_newest_card(customer_id=customer_id)
        seam.client.pay_invoice(invoice_id=made.latest_invoice_id)
        (invoice,) = seam.client.paid_invoices_since(since=since)
        assert (invoice.invoice_id, invoice.collected_minor) == (made.latest_invoice_id, made.amount_minor)


class TestChangingSubscriptions:
    def test_an_amount_changes_from_the_next_period_on(
        self, seam: SeamCase, begin: Callable[..., SubscriptionState], key: Key, amount: int
    ) -> None:
        made = begin()
        changed = self._update(seam, made, amount_minor=2 * amount, key=key())
        assert (changed.amount_minor, changed.item_id) == (2 * amount, made.item_id)
        assert changed.latest_invoice_id == made.latest_invoice_id
        seam.account.pass_time(_MONTH)
        renewed = seam.client.retrieve_subscription(subscription_id=made.subscription_id)
        invoice = seam.client.retrieve_invoice(invoice_id=renewed.latest_invoice_id)
        assert (invoice.collected_minor, invoice.billing_reason) == (2 * amount, "subscription_cycle")
        assert invoice.period_start == made.current_period_end

    def test_a_cancellation_at_period_end_is_set_and_removed(
        self, seam: SeamCase, begin: Callable[..., SubscriptionState], key: Key
    ) -> None:
        made = begin()
        for cancels in (True, False, True):
            changed = self._update(seam, made, cancels_at_period_end=cancels, key=key())
            assert (changed.cancels_at_period_end, changed.status) == (cancels, "active")
            assert changed.amount_minor == made.amount_minor
        seam.account.pass_time(_MONTH)
        ended = seam.client.retrieve_subscription(subscription_id=made.subscription_id)
        assert (ended.status, ended.ended_at) == ("canceled", made.current_period_end)

    def test_a_repeated_cancellation_gets_the_same_answer(
        self, seam: SeamCase, begin: Callable[..., SubscriptionState], key: Key
    ) -> None:
        made = begin()
        ended = seam.client.cancel_subscription(subscription_id=made.subscription_id, key=key())
        assert ended.status == "canceled"
        assert ended.ended_at is not None
        assert seam.client.cancel_subscription(subscription_id=made.subscription_id, key=key()) == ended
        with pytest.raises(BillingRefused):
            self._update(seam, made, key=key())

    def test_the_newest_subscription_is_listed_first(
        self, seam: SeamCase, begin: Callable[..., SubscriptionState], key: Key, customer_id: str
    ) -> None:
        first = begin()
        seam.client.cancel_subscription(subscription_id=first.subscription_id, key=key())
        second = begin()
        listed = seam.client.list_subscriptions(customer_id=customer_id)
        assert [(state.subscription_id, state.status) for state in listed] == [
            (second.subscription_id, "active"),
            (first.subscription_id, "canceled"),
        ]

    @staticmethod
    def _update(seam: SeamCase, made: SubscriptionState, **changes: Any) -> SubscriptionState:
        wanted = {
            "subscription_id": made.subscription_id,
            "item_id": made.item_id,
            "amount_minor": None,
            "currency": "usd",
            "cancels_at_period_end": False,
        }
        return seam.client.update_subscription(**{**wanted, **changes})


class TestNextCharges:
    def test_the_next_charge_is_that_of_the_next_invoice(
        self, seam: SeamCase, begin: Callable[..., SubscriptionState], key: Key, amount: int
    ) -> None:
        made = begin()
        changes: dict[str, Any] = {
            "subscription_id": made.subscription_id,
            "item_id": made.item_id,
            "currency": "usd",
        }
        for wanted, ends, promised in (
            (2 * amount, False, 2 * amount),
            (None, True, None),
            (None, False, 2 * amount),
        ):
            seam.client.update_subscription(
                **changes, amount_minor=wanted, cancels_at_period_end=ends, key=key()
            )
            assert seam.client.next_charge(subscription_id=made.subscription_id) == promised
        seam.account.pass_time(_MONTH)
        renewed = seam.client.retrieve_subscription(subscription_id=made.subscription_id)
        invoice = seam.client.retrieve_invoice(invoice_id=renewed.latest_invoice_id)
        assert invoice.collected_minor == 2 * amount
        assert (renewed.latest_invoice, invoice.settlement) == ("collected", "collected")

    def test_a_customer_tells_whom_it_was_made_for_until_it_is_deleted(
        self, seam: SeamCase, key: Key
    ) -> None:
        address = "0x" + secrets.token_hex(20)
        made = seam.client.create_customer(profile_address=address, user_id="7", key=key())
        assert seam.client.customer_made_for(customer_id=made) == address
        seam.account.delete_customer(made)
        assert seam.client.customer_made_for(customer_id=made) == ""


class TestRenewals:
    def test_a_month_is_collected_an_hour_after_it_began(
        self, seam: SeamCase, begin: Callable[..., SubscriptionState], amount: int
    ) -> None:
        made = begin()
        since = seam.account.now() + timedelta(seconds=1)
        seam.account.pass_time(int((made.current_period_end - seam.account.now()).total_seconds()) + 1)
        turned = seam.client.retrieve_subscription(subscription_id=made.subscription_id)
        assert (turned.status, turned.current_period_start) == ("active", made.current_period_end)
        assert list(seam.client.paid_invoices_since(since=since)) == []
        seam.account.pass_time(_HOUR)
        (invoice,) = seam.client.paid_invoices_since(since=since)
        assert (invoice.invoice_id, invoice.collected_minor) == (turned.latest_invoice_id, amount)
        assert (invoice.period_start, invoice.period_end) == (
            turned.current_period_start,
            turned.current_period_end,
        )
        assert len(list(seam.client.paid_invoices_since(since=made.current_period_start))) == 2
        assert list(seam.client.part_paid_invoices_since(since=made.current_period_start)) == []

    def test_a_card_that_is_declined_later_makes_it_past_due(
        self, seam: SeamCase, begin: Callable[..., SubscriptionState], customer_id: str
    ) -> None:
        made = begin()
        intent = seam.account.capture(customer_id)
        _, method = seam.client.payment_method_of_setup(setup_intent_id=intent)
        seam.client.use_newest_card(customer_id=customer_id)
        seam.account.decline_from_now(method, "insufficient_funds")
        seam.account.pass_time(
            int((made.current_period_end - seam.account.now()).total_seconds()) + 2 * _HOUR
        )
        late = seam.client.retrieve_subscription(subscription_id=made.subscription_id)
        assert late.status == "past_due"
        seam.account.decline_from_now(method, None)
        seam.client.pay_invoice(invoice_id=late.latest_invoice_id)
        paid = seam.client.retrieve_subscription(subscription_id=made.subscription_id)
        assert paid.status == "active"


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

    @pytest.mark.parametrize("card", [DECLINES, NEEDS_CONFIRMATION])
    def test_an_unpaid_invoice_tells_what_it_waits_for_until_it_is_void(
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

    def test_a_draft_that_is_voided_is_gone(
        self, seam: SeamCase, customer_id: str, key: Key, amount: int
    ) -> None:
        invoice_id = seam.client.create_purchase(
            customer_id=customer_id, amount_minor=amount, currency="usd", key=key()
        )
        for _ in range(2):
            seam.client.void_invoice(invoice_id=invoice_id)
        with pytest.raises(BillingRefused):
            seam.client.retrieve_invoice(invoice_id=invoice_id)


class TestReturnedMoney:
    def test_refunds_that_did_not_fail_and_withdrawn_sums_are_returned_money(
        self, seam: SeamCase, begin: Callable[..., SubscriptionState], amount: int
    ) -> None:
        payment = self._payment(seam, begin())
        assert self._returned(seam, payment) == (0, 0)
        refund = seam.account.refund(payment, amount // 3)
        kept = seam.account.refund(payment, amount // 5)
        assert self._returned(seam, payment) == (amount // 3 + amount // 5, 0)
        seam.account.fail_refund(refund)
        assert self._returned(seam, payment) == (amount // 5, 0)
        dispute = seam.account.dispute(payment, withdraw=False)
        assert self._returned(seam, payment) == (amount // 5, 0)
        seam.account.withdraw(dispute)
        assert self._returned(seam, payment) == (amount // 5, amount - amount // 5)
        seam.account.reinstate(dispute)
        assert self._returned(seam, payment) == (amount // 5, 0)
        for object_id in (refund, kept, dispute):
            assert seam.client.payment_intent_of(object_id=object_id) == payment

    def test_every_movement_of_a_payment_is_a_balance_transaction(
        self, seam: SeamCase, begin: Callable[..., SubscriptionState], amount: int
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
        self, seam: SeamCase, begin: Callable[..., SubscriptionState], amount: int, key: Key
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


class TestReadingTheAccount:
    def test_every_customer_is_read_with_its_user_and_profile(self, seam: SeamCase, key: Key) -> None:
        wanted = set()
        for _ in range(3):
            address, user = "0x" + secrets.token_hex(20), str(secrets.randbelow(10**6))
            made = seam.client.create_customer(profile_address=address, user_id=user, key=key())
            wanted.add((made, user, address))
        customers = list(seam.client.customers())
        assert {(one.customer_id, one.user_id, one.profile_address) for one in customers} >= wanted
        assert {one.is_live for one in customers} == {False}
        assert all(abs((one.created_at - seam.account.now()).total_seconds()) < 60 for one in customers)

    def test_subscriptions_are_read_until_they_have_ended(
        self, seam: SeamCase, begin: Callable[..., SubscriptionState], key: Key
    ) -> None:
        ended, live = begin(), begin()
        seam.client.cancel_subscription(subscription_id=ended.subscription_id, key=key())
        states = {state.subscription_id: state for state in seam.client.live_subscriptions()}
        assert states == {live.subscription_id: live}

    def test_recently_refunded_or_disputed_payments_are_read(
        self, seam: SeamCase, begin: Callable[..., SubscriptionState], amount: int
    ) -> None:
        early, refunded, failed, disputed, _ = (
            seam.client.retrieve_invoice(invoice_id=begin().latest_invoice_id).payment_intent_id
            for _ in range(5)
        )
        seam.account.refund(early)
        seam.account.pass_time(_HOUR)
        since = seam.account.now()
        seam.account.refund(refunded, amount // 2)
        seam.account.refund(refunded, amount // 3)
        seam.account.fail_refund(seam.account.refund(failed))
        seam.account.dispute(disputed, withdraw=False)
        assert set(seam.client.refunded_or_disputed_since(since=since)) == {refunded, failed, disputed}
        assert early in set(seam.client.refunded_or_disputed_since(since=since - timedelta(hours=2)))


class TestReconciliationReads:
    """What the reconciliation reads."""

    def test_every_customer_is_listed_with_its_user_and_profile(self, seam: SeamCase, key: Key) -> None:
        before, made = seam.account.now(), {}
        for number in range(3):
            address, user = "0x" + secrets.token_hex(20), str(number)
            made[seam.client.create_customer(profile_address=address, user_id=user, key=key())] = (
                user,
                address,
            )
        listed = list(seam.client.customers())
        assert {state.customer_id: (state.user_id, state.profile_address) for state in listed} == made
        assert all(before <= state.created_at <= seam.account.now() and not state.is_live for state in listed)

    def test_ended_subscriptions_are_not_listed_as_live(
        self, seam: SeamCase, begin: Callable[..., SubscriptionState], key: Key
    ) -> None:
        running, ended = begin(), begin()
        seam.client.cancel_subscription(subscription_id=ended.subscription_id, key=key())
        waiting = begin(NEEDS_CONFIRMATION)
        listed = {state.subscription_id: state for state in seam.client.live_subscriptions()}
        assert set(listed) == {running.subscription_id, waiting.subscription_id}
        assert listed[running.subscription_id] == running

    def test_returned_payments_are_listed_by_the_time_of_the_refund_or_dispute(
        self, seam: SeamCase, begin: Callable[..., SubscriptionState]
    ) -> None:
        refunded, disputed, kept = (
            seam.client.retrieve_invoice(invoice_id=begin().latest_invoice_id).payment_intent_id
            for _ in range(3)
        )
        seam.account.refund(refunded, 10)
        seam.account.pass_time(_HOUR)
        between = seam.account.now()
        seam.account.dispute(disputed, withdraw=False)
        began = seam.account.now() - timedelta(days=1)
        assert set(seam.client.refunded_or_disputed_since(since=began)) == {refunded, disputed}
        assert set(seam.client.refunded_or_disputed_since(since=between)) == {disputed}
        assert kept not in {refunded, disputed}


class TestEvents:
    def test_undelivered_events_are_listed_oldest_first(
        self, seam: SeamCase, begin: Callable[..., SubscriptionState], key: Key
    ) -> None:
        seam.account.lose_deliveries()
        made = begin()
        seam.client.cancel_subscription(subscription_id=made.subscription_id, key=key())
        seam.account.pass_time(4 * 86_400)
        types = ("invoice.paid", "customer.subscription.deleted")
        undelivered = list(
            seam.client.undelivered_events(since=seam.account.now() - timedelta(days=29), types=types)
        )
        assert [(event.type, event.object_id) for event, _ in undelivered] == [
            ("invoice.paid", made.latest_invoice_id),
            ("customer.subscription.deleted", made.subscription_id),
        ]
        for event, body in undelivered:
            parsed = json.loads(body)
            assert (parsed["id"], parsed["type"], event.is_live) == (event.event_id, event.type, False)
        assert not list(seam.client.undelivered_events(since=seam.account.now(), types=types))

    def test_only_freshly_signed_webhooks_are_accepted(self, seam: SeamCase) -> None:
        body = _event_body()
        for secret in settings.STRIPE_WEBHOOK_SECRETS:
            event = seam.client.read_webhook(body=body, signature=signature(body, secret=secret))
            assert event is not None
            assert event.event_id == json.loads(body)["id"]
        with pytest.raises(WebhookRefused):
            seam.client.read_webhook(body=body, signature=signature(body, secret="whsec_of_somebody"))


def _event_body() -> bytes:
    event = {
        "object": "event",
        "id": f"evt_{secrets.token_hex(8)}",
        "type": "invoice.paid",
        "api_version": "2026-10-28.endive",
        "created": int(time.time()),
        "livemode": False,
        "data": {"object": {"id": f"in_{secrets.token_hex(8)}"}},
    }
    return json.dumps(event).encode()
