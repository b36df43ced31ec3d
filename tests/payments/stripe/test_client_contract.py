"""What every billing client promises, in memory and over the wire to the double."""

import json
import secrets
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings

from payments.errors import BillingRefused, PaymentMethodRequired, WebhookRefused
from payments.stripe.client import SubscriptionState
from tests.payments.mail import signature
from tests.payments.worlds import ASKS, DECLINES, VISA, Setting

_MONTH = 32 * 86_400
_HOUR = 3_600
Key = Callable[[], str]


@pytest.fixture
def begin(here: Setting, customer_id: str, key: Key, amount: int) -> Callable[..., SubscriptionState]:
    """Return a function that captures a card and begins a subscription with it."""

    def run(card: str = VISA, **changes: Any) -> SubscriptionState:
        here.world.capture(customer_id, card)
        assert here.client.has_payment_method(customer_id=customer_id)
        wanted = {
            "customer_id": customer_id,
            "amount_minor": amount,
            "currency": "usd",
            "cancels_at_period_end": False,
            "key": key(),
        }
        return here.client.create_subscription(**{**wanted, **changes})

    return run


class TestCustomers:
    def test_a_key_stands_for_one_customer(self, here: Setting, key: Key) -> None:
        whose = {"profile_address": "0x" + secrets.token_hex(20), "user_id": "7"}
        first, again = key(), key()
        made = here.client.create_customer(**whose, key=first)
        assert here.client.create_customer(**whose, key=first) == made
        assert here.client.create_customer(**whose, key=again) != made

    def test_a_key_is_refused_to_other_content(self, here: Setting, key: Key) -> None:
        first = key()
        here.client.create_customer(profile_address="0x1", user_id="1", key=first)
        with pytest.raises(BillingRefused):
            here.client.create_customer(profile_address="0x2", user_id="1", key=first)

    def test_a_setup_intent_has_a_secret_of_its_own(self, here: Setting, customer_id: str) -> None:
        secret, other = (here.client.create_setup_intent(customer_id=customer_id) for _ in range(2))
        assert secret.startswith("seti_")
        assert "_secret_" in secret
        assert secret != other
        unfinished = secret.split("_secret_")[0]
        assert here.client.payment_method_of_setup(setup_intent_id=unfinished) == (customer_id, "")

    def test_a_captured_card_is_one_to_pay_with(self, here: Setting, customer_id: str) -> None:
        assert not here.client.has_payment_method(customer_id=customer_id)
        intent = here.world.capture(customer_id)
        assert here.client.has_payment_method(customer_id=customer_id)
        owner, method = here.client.payment_method_of_setup(setup_intent_id=intent)
        assert (owner, method[:3]) == (customer_id, "pm_")


class TestBeginning:
    def test_a_subscription_is_paid_and_runs_for_a_month(
        self, here: Setting, begin: Callable[..., SubscriptionState], customer_id: str, amount: int
    ) -> None:
        made = begin()
        assert (made.status, made.customer_id) == ("active", customer_id)
        assert (made.amount_minor, made.currency) == (amount, "usd")
        assert (made.cancels_at_period_end, made.ended_at) == (False, None)
        assert (made.payment_client_secret, made.decline_code) == ("", "")
        assert timedelta(days=28) <= made.current_period_end - made.current_period_start <= timedelta(days=31)
        invoice = here.client.retrieve_invoice(invoice_id=made.latest_invoice_id)
        assert (invoice.status, invoice.billing_reason) == ("paid", "subscription_create")
        assert (invoice.collected_minor, invoice.currency, invoice.is_live) == (amount, "usd", False)
        assert (invoice.subscription_id, invoice.customer_id) == (made.subscription_id, customer_id)
        assert (invoice.period_start, invoice.period_end) == (
            made.current_period_start,
            made.current_period_end,
        )
        assert invoice.payment_intent_id.startswith("pi_")
        assert invoice.paid_at is not None

    def test_a_key_stands_for_one_subscription_as_it_is_now(
        self, here: Setting, begin: Callable[..., SubscriptionState], key: Key, customer_id: str
    ) -> None:
        first = key()
        made = begin(key=first)
        assert begin(key=first) == made
        here.client.cancel_subscription(subscription_id=made.subscription_id, key=key())
        assert begin(key=first).status == "canceled"
        assert len(here.client.list_subscriptions(customer_id=customer_id)) == 1

    def test_without_a_card_nothing_begins(self, here: Setting, customer_id: str, key: Key) -> None:
        with pytest.raises(PaymentMethodRequired):
            here.client.create_subscription(
                customer_id=customer_id,
                amount_minor=900,
                currency="usd",
                cancels_at_period_end=False,
                key=key(),
            )
        assert here.client.list_subscriptions(customer_id=customer_id) == []

    def test_an_unknown_customer_is_refused(self, here: Setting, begin: Callable[..., Any]) -> None:
        with pytest.raises(BillingRefused):
            begin(customer_id=f"cus_{secrets.token_hex(7)}")

    def test_a_declined_card_leaves_it_incomplete(self, begin: Callable[..., SubscriptionState]) -> None:
        made = begin(DECLINES)
        assert (made.status, made.decline_code) == ("incomplete", "generic_decline")
        assert made.payment_client_secret == ""

    def test_a_card_that_asks_waits_for_its_holder(
        self, here: Setting, begin: Callable[..., SubscriptionState], amount: int
    ) -> None:
        made = begin(ASKS)
        assert (made.status, made.decline_code) == ("incomplete", "")
        here.world.confirm(made.payment_client_secret)
        active = here.client.retrieve_subscription(subscription_id=made.subscription_id)
        assert (active.status, active.payment_client_secret) == ("active", "")
        invoice = here.client.retrieve_invoice(invoice_id=made.latest_invoice_id)
        assert (invoice.status, invoice.collected_minor) == ("paid", amount)

    @pytest.mark.parametrize("cents", [1, 49])
    def test_what_is_too_little_to_charge_is_paid_with_nothing(
        self, here: Setting, begin: Callable[..., SubscriptionState], cents: int
    ) -> None:
        made = begin(amount_minor=cents)
        invoice = here.client.retrieve_invoice(invoice_id=made.latest_invoice_id)
        assert (invoice.status, invoice.collected_minor, invoice.payment_intent_id) == ("paid", 0, "")


class TestPayingAgain:
    def test_another_card_pays_the_open_invoice(
        self, here: Setting, begin: Callable[..., SubscriptionState], customer_id: str
    ) -> None:
        made = begin(DECLINES)
        here.client.pay_open_invoice(invoice_id=made.latest_invoice_id)
        declined = here.client.retrieve_subscription(subscription_id=made.subscription_id)
        assert (declined.status, declined.decline_code) == ("incomplete", "generic_decline")
        here.world.capture(customer_id)
        here.client.use_newest_card(customer_id=customer_id)
        for _ in range(2):
            here.client.pay_open_invoice(invoice_id=made.latest_invoice_id)
            paid = here.client.retrieve_subscription(subscription_id=made.subscription_id)
            assert paid.status == "active"
        invoice = here.client.retrieve_invoice(invoice_id=made.latest_invoice_id)
        assert (invoice.status, invoice.collected_minor) == ("paid", made.amount_minor)

    def test_money_from_elsewhere_is_none_that_was_collected(
        self, here: Setting, begin: Callable[..., SubscriptionState]
    ) -> None:
        made = begin(DECLINES)
        here.world.pay_out_of_band(made.latest_invoice_id)
        invoice = here.client.retrieve_invoice(invoice_id=made.latest_invoice_id)
        assert (invoice.status, invoice.collected_minor) == ("paid", 0)


class TestChanging:
    def test_an_amount_changes_from_the_next_period_on(
        self, here: Setting, begin: Callable[..., SubscriptionState], key: Key, amount: int
    ) -> None:
        made = begin()
        changed = self._update(here, made, amount_minor=2 * amount, key=key())
        assert (changed.amount_minor, changed.item_id) == (2 * amount, made.item_id)
        assert changed.latest_invoice_id == made.latest_invoice_id
        here.world.pass_time(_MONTH)
        renewed = here.client.retrieve_subscription(subscription_id=made.subscription_id)
        invoice = here.client.retrieve_invoice(invoice_id=renewed.latest_invoice_id)
        assert (invoice.collected_minor, invoice.billing_reason) == (2 * amount, "subscription_cycle")
        assert invoice.period_start == made.current_period_end

    def test_an_end_is_set_and_taken_back(
        self, here: Setting, begin: Callable[..., SubscriptionState], key: Key
    ) -> None:
        made = begin()
        for cancels in (True, False, True):
            changed = self._update(here, made, cancels_at_period_end=cancels, key=key())
            assert (changed.cancels_at_period_end, changed.status) == (cancels, "active")
            assert changed.amount_minor == made.amount_minor
        here.world.pass_time(_MONTH)
        ended = here.client.retrieve_subscription(subscription_id=made.subscription_id)
        assert (ended.status, ended.ended_at) == ("canceled", made.current_period_end)

    def test_an_end_at_once_is_answered_alike_every_time(
        self, here: Setting, begin: Callable[..., SubscriptionState], key: Key
    ) -> None:
        made = begin()
        ended = here.client.cancel_subscription(subscription_id=made.subscription_id, key=key())
        assert ended.status == "canceled"
        assert ended.ended_at is not None
        assert here.client.cancel_subscription(subscription_id=made.subscription_id, key=key()) == ended
        with pytest.raises(BillingRefused):
            self._update(here, made, key=key())

    def test_the_newest_subscription_is_listed_first(
        self, here: Setting, begin: Callable[..., SubscriptionState], key: Key, customer_id: str
    ) -> None:
        first = begin()
        here.client.cancel_subscription(subscription_id=first.subscription_id, key=key())
        second = begin()
        listed = here.client.list_subscriptions(customer_id=customer_id)
        assert [(found.subscription_id, found.status) for found in listed] == [
            (second.subscription_id, "active"),
            (first.subscription_id, "canceled"),
        ]

    @staticmethod
    def _update(here: Setting, made: SubscriptionState, **changes: Any) -> SubscriptionState:
        wanted = {
            "subscription_id": made.subscription_id,
            "item_id": made.item_id,
            "amount_minor": None,
            "currency": "usd",
            "cancels_at_period_end": False,
        }
        return here.client.update_subscription(**{**wanted, **changes})


class TestRenewing:
    def test_a_month_is_collected_an_hour_after_it_began(
        self, here: Setting, begin: Callable[..., SubscriptionState], amount: int
    ) -> None:
        made = begin()
        since = here.world.now() + timedelta(seconds=1)
        here.world.pass_time(int((made.current_period_end - here.world.now()).total_seconds()) + 1)
        turned = here.client.retrieve_subscription(subscription_id=made.subscription_id)
        assert (turned.status, turned.current_period_start) == ("active", made.current_period_end)
        assert list(here.client.paid_invoices_since(since=since)) == []
        here.world.pass_time(_HOUR)
        (invoice,) = here.client.paid_invoices_since(since=since)
        assert (invoice.invoice_id, invoice.collected_minor) == (turned.latest_invoice_id, amount)
        assert (invoice.period_start, invoice.period_end) == (
            turned.current_period_start,
            turned.current_period_end,
        )
        assert len(list(here.client.paid_invoices_since(since=made.current_period_start))) == 2

    def test_a_card_that_is_declined_later_makes_it_past_due(
        self, here: Setting, begin: Callable[..., SubscriptionState], customer_id: str
    ) -> None:
        made = begin()
        intent = here.world.capture(customer_id)
        _, method = here.client.payment_method_of_setup(setup_intent_id=intent)
        here.client.use_newest_card(customer_id=customer_id)
        here.world.decline_from_now(method, "insufficient_funds")
        here.world.pass_time(int((made.current_period_end - here.world.now()).total_seconds()) + 2 * _HOUR)
        late = here.client.retrieve_subscription(subscription_id=made.subscription_id)
        assert late.status == "past_due"
        here.world.decline_from_now(method, None)
        here.client.pay_open_invoice(invoice_id=late.latest_invoice_id)
        paid = here.client.retrieve_subscription(subscription_id=made.subscription_id)
        assert paid.status == "active"


class TestMoneyBack:
    def test_refunds_that_stand_and_sums_that_are_withdrawn_are_gone(
        self, here: Setting, begin: Callable[..., SubscriptionState], amount: int
    ) -> None:
        payment = self._payment(here, begin())
        assert self._gone(here, payment) == (0, 0)
        refund = here.world.refund(payment, amount // 3)
        kept = here.world.refund(payment, amount // 5)
        assert self._gone(here, payment) == (amount // 3 + amount // 5, 0)
        here.world.fail_refund(refund)
        assert self._gone(here, payment) == (amount // 5, 0)
        dispute = here.world.dispute(payment, withdraw=False)
        assert self._gone(here, payment) == (amount // 5, 0)
        here.world.withdraw(dispute)
        assert self._gone(here, payment) == (amount // 5, amount - amount // 5)
        here.world.reinstate(dispute)
        assert self._gone(here, payment) == (amount // 5, 0)
        for found in (refund, kept, dispute):
            assert here.client.payment_intent_of(object_id=found) == payment

    def test_what_is_no_money_has_no_payment(self, here: Setting) -> None:
        assert here.client.payment_intent_of(object_id=f"txn_{secrets.token_hex(8)}") == ""

    @staticmethod
    def _payment(here: Setting, made: SubscriptionState) -> str:
        return here.client.retrieve_invoice(invoice_id=made.latest_invoice_id).payment_intent_id

    @staticmethod
    def _gone(here: Setting, payment: str) -> tuple[int, int]:
        found = here.client.returned_money(payment_intent_id=payment)
        return found.refunded_minor, found.disputed_minor


class TestReadingTheAccount:
    def test_every_customer_is_read_with_whom_it_is_for(self, here: Setting, key: Key) -> None:
        wanted = set()
        for _ in range(3):
            address, user = "0x" + secrets.token_hex(20), str(secrets.randbelow(10**6))
            made = here.client.create_customer(profile_address=address, user_id=user, key=key())
            wanted.add((made, user, address))
        found = list(here.client.customers())
        assert {(one.customer_id, one.user_id, one.profile_address) for one in found} >= wanted
        assert {one.is_live for one in found} == {False}
        assert all(abs((one.created_at - here.world.now()).total_seconds()) < 60 for one in found)

    def test_subscriptions_are_read_until_they_have_ended(
        self, here: Setting, begin: Callable[..., SubscriptionState], key: Key
    ) -> None:
        ended, living = begin(), begin()
        here.client.cancel_subscription(subscription_id=ended.subscription_id, key=key())
        found = {state.subscription_id: state for state in here.client.living_subscriptions()}
        assert found == {living.subscription_id: living}

    def test_payments_are_read_of_which_anything_went_back_lately(
        self, here: Setting, begin: Callable[..., SubscriptionState], amount: int
    ) -> None:
        early, refunded, failed, disputed, _ = (
            here.client.retrieve_invoice(invoice_id=begin().latest_invoice_id).payment_intent_id
            for _ in range(5)
        )
        here.world.refund(early)
        here.world.pass_time(_HOUR)
        since = here.world.now()
        here.world.refund(refunded, amount // 2)
        here.world.refund(refunded, amount // 3)
        here.world.fail_refund(here.world.refund(failed))
        here.world.dispute(disputed, withdraw=False)
        assert set(here.client.refunded_or_disputed_since(since=since)) == {refunded, failed, disputed}
        assert early in set(here.client.refunded_or_disputed_since(since=since - timedelta(hours=2)))


class TestSurveying:
    """What a comparison of the whole account reads."""

    def test_every_customer_is_listed_with_whom_it_was_made_for(self, here: Setting, key: Key) -> None:
        before, made = here.world.now(), {}
        for number in range(3):
            address, user = "0x" + secrets.token_hex(20), str(number)
            made[here.client.create_customer(profile_address=address, user_id=user, key=key())] = (
                user,
                address,
            )
        listed = list(here.client.customers())
        assert {found.customer_id: (found.user_id, found.profile_address) for found in listed} == made
        assert all(before <= found.created_at <= here.world.now() and not found.is_live for found in listed)

    def test_what_has_ended_is_no_living_subscription(
        self, here: Setting, begin: Callable[..., SubscriptionState], key: Key
    ) -> None:
        running, ended = begin(), begin()
        here.client.cancel_subscription(subscription_id=ended.subscription_id, key=key())
        waiting = begin(ASKS)
        listed = {found.subscription_id: found for found in here.client.living_subscriptions()}
        assert set(listed) == {running.subscription_id, waiting.subscription_id}
        assert listed[running.subscription_id] == running

    def test_payments_that_went_back_are_listed_by_when_that_began(
        self, here: Setting, begin: Callable[..., SubscriptionState]
    ) -> None:
        refunded, disputed, kept = (
            here.client.retrieve_invoice(invoice_id=begin().latest_invoice_id).payment_intent_id
            for _ in range(3)
        )
        here.world.refund(refunded, 10)
        here.world.pass_time(_HOUR)
        between = here.world.now()
        here.world.dispute(disputed, withdraw=False)
        began = here.world.now() - timedelta(days=1)
        assert set(here.client.refunded_or_disputed_since(since=began)) == {refunded, disputed}
        assert set(here.client.refunded_or_disputed_since(since=between)) == {disputed}
        assert kept not in {refunded, disputed}


class TestTelling:
    def test_events_that_nobody_took_are_listed_oldest_first(
        self, here: Setting, begin: Callable[..., SubscriptionState], key: Key
    ) -> None:
        here.world.lose_deliveries()
        made = begin()
        here.client.cancel_subscription(subscription_id=made.subscription_id, key=key())
        here.world.pass_time(4 * 86_400)
        types = ("invoice.paid", "customer.subscription.deleted")
        found = list(here.client.undelivered_events(since=here.world.now() - timedelta(days=29), types=types))
        assert [(event.type, event.object_id) for event, _ in found] == [
            ("invoice.paid", made.latest_invoice_id),
            ("customer.subscription.deleted", made.subscription_id),
        ]
        for event, body in found:
            told = json.loads(body)
            assert (told["id"], told["type"], event.is_live) == (event.event_id, event.type, False)
        assert not list(here.client.undelivered_events(since=here.world.now(), types=types))

    def test_only_what_was_signed_for_us_just_now_is_believed(self, here: Setting) -> None:
        body = _event_body()
        for secret in settings.STRIPE_WEBHOOK_SECRETS:
            event = here.client.read_webhook(body=body, signature=signature(body, secret=secret))
            assert event.event_id == json.loads(body)["id"]
        with pytest.raises(WebhookRefused):
            here.client.read_webhook(body=body, signature=signature(body, secret="whsec_of_somebody"))


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
