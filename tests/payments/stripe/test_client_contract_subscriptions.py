"""What every billing client does about subscriptions and their invoices, on the fake and on the double."""

import secrets
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from payments.errors import BillingRefused, PaymentMethodRequired
from payments.stripe.client import SubscriptionState
from tests.payments.stripe.conftest import Begin, Key
from tests.payments.stripe_accounts import DECLINES, NEEDS_CONFIRMATION, SeamCase

_MONTH = 32 * 86_400
_HOUR = 3_600


class TestCreatingSubscriptions:
    def test_a_subscription_is_paid_and_lasts_a_month(
        self, seam: SeamCase, begin: Begin, customer_id: str, amount: int
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

    def test_a_key_creates_one_subscription_and_returns_its_current_state(
        self, seam: SeamCase, begin: Begin, key: Key, customer_id: str
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

    def test_a_declined_card_leaves_it_incomplete(self, begin: Begin) -> None:
        made = begin(DECLINES)
        assert (made.status, made.decline_code) == ("incomplete", "generic_decline")
        assert made.payment_client_secret == ""

    def test_a_card_that_needs_confirmation_waits_for_its_holder(
        self, seam: SeamCase, begin: Begin, amount: int
    ) -> None:
        made = begin(NEEDS_CONFIRMATION)
        assert (made.status, made.decline_code) == ("incomplete", "")
        seam.account.confirm(made.payment_client_secret)
        active = seam.client.retrieve_subscription(subscription_id=made.subscription_id)
        assert (active.status, active.payment_client_secret) == ("active", "")
        invoice = seam.client.retrieve_invoice(invoice_id=made.latest_invoice_id)
        assert (invoice.status, invoice.collected_minor) == ("paid", amount)

    def test_a_first_payment_that_is_never_made_expires_after_a_day(
        self, seam: SeamCase, begin: Begin
    ) -> None:
        made = begin(NEEDS_CONFIRMATION)
        seam.account.pass_time(22 * _HOUR)
        waiting = seam.client.retrieve_subscription(subscription_id=made.subscription_id)
        assert waiting.status == "incomplete"
        seam.account.pass_time(2 * _HOUR)
        expired = seam.client.retrieve_subscription(subscription_id=made.subscription_id)
        assert (expired.status, expired.payment_client_secret) == ("incomplete_expired", "")
        assert expired.ended_at is not None
        assert seam.client.retrieve_invoice(invoice_id=made.latest_invoice_id).status == "void"

    @pytest.mark.parametrize("cents", [1, 49])
    def test_an_amount_below_the_minimum_charge_is_paid_without_a_payment(
        self, seam: SeamCase, begin: Begin, cents: int
    ) -> None:
        made = begin(amount_minor=cents)
        invoice = seam.client.retrieve_invoice(invoice_id=made.latest_invoice_id)
        assert (invoice.status, invoice.collected_minor, invoice.payment_intent_id) == ("paid", 0, "")


class TestOpenInvoices:
    def test_another_card_pays_the_open_invoice(self, seam: SeamCase, begin: Begin, customer_id: str) -> None:
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

    def test_money_paid_outside_of_stripe_is_not_collected(self, seam: SeamCase, begin: Begin) -> None:
        made = begin(DECLINES)
        seam.account.pay_out_of_band(made.latest_invoice_id)
        invoice = seam.client.retrieve_invoice(invoice_id=made.latest_invoice_id)
        assert (invoice.status, invoice.collected_minor) == ("paid", 0)

    def test_invoices_are_summed_up_page_by_page(
        self, seam: SeamCase, begin: Begin, customer_id: str
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
        assert seam.client.invoice_summary(invoice_id=oldest.invoice_id) == oldest

    def test_an_old_invoice_that_is_paid_now_is_read_among_the_new(
        self, seam: SeamCase, begin: Begin, customer_id: str
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
        self, seam: SeamCase, begin: Begin, key: Key, amount: int
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
        self, seam: SeamCase, begin: Begin, key: Key
    ) -> None:
        made = begin()
        for cancels in (True, False, True):
            changed = self._update(seam, made, cancels_at_period_end=cancels, key=key())
            assert (changed.cancels_at_period_end, changed.status) == (cancels, "active")
            assert changed.amount_minor == made.amount_minor
        seam.account.pass_time(_MONTH)
        ended = seam.client.retrieve_subscription(subscription_id=made.subscription_id)
        assert (ended.status, ended.ended_at) == ("canceled", made.current_period_end)

    def test_a_repeated_cancellation_gets_the_same_response(
        self, seam: SeamCase, begin: Begin, key: Key
    ) -> None:
        made = begin()
        ended = seam.client.cancel_subscription(subscription_id=made.subscription_id, key=key())
        assert ended.status == "canceled"
        assert ended.ended_at is not None
        assert seam.client.cancel_subscription(subscription_id=made.subscription_id, key=key()) == ended
        with pytest.raises(BillingRefused):
            self._update(seam, made, key=key())

    def test_the_newest_subscription_is_listed_first(
        self, seam: SeamCase, begin: Begin, key: Key, customer_id: str
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
        self, seam: SeamCase, begin: Begin, key: Key, amount: int
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

    def test_a_customer_names_its_profile_until_it_is_deleted(self, seam: SeamCase, key: Key) -> None:
        address = "0x" + secrets.token_hex(20)
        made = seam.client.create_customer(profile_address=address, user_id="7", key=key())
        assert seam.client.customer_made_for(customer_id=made) == address
        seam.account.delete_customer(made)
        assert seam.client.customer_made_for(customer_id=made) == ""


class TestRenewals:
    def test_a_month_is_collected_an_hour_after_it_began(
        self, seam: SeamCase, begin: Begin, amount: int
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
        self, seam: SeamCase, begin: Begin, customer_id: str
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
