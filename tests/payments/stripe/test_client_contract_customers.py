"""What every billing client does about customers, events and whole accounts, on the fake and on the double."""

import json
import secrets
import time
from datetime import timedelta

import pytest
from django.conf import settings

from payments.errors import BillingRefused, WebhookRefused
from tests.payments.stripe.conftest import Begin, Key
from tests.payments.stripe_accounts import NEEDS_CONFIRMATION, SeamCase
from tests.payments.webhook_events import signature

_HOUR = 3_600


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

    def test_a_captured_card_is_recognised_by_its_last_digits(self, seam: SeamCase, customer_id: str) -> None:
        assert seam.client.saved_card(customer_id=customer_id) is None
        seam.account.capture(customer_id)
        card = seam.client.saved_card(customer_id=customer_id)
        assert seam.client.customer_balance(customer_id=customer_id, currency="usd") == 0
        assert card is not None
        assert (card.brand, card.last4) == ("visa", "4242")
        assert card.expires_year > 2025

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
        self, seam: SeamCase, begin: Begin, key: Key
    ) -> None:
        ended, live = begin(), begin()
        seam.client.cancel_subscription(subscription_id=ended.subscription_id, key=key())
        states = {state.subscription_id: state for state in seam.client.live_subscriptions()}
        assert states == {live.subscription_id: live}

    def test_recently_refunded_or_disputed_payments_are_read(
        self, seam: SeamCase, begin: Begin, amount: int
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

    def test_ended_subscriptions_are_not_listed_as_live(self, seam: SeamCase, begin: Begin, key: Key) -> None:
        running, ended = begin(), begin()
        seam.client.cancel_subscription(subscription_id=ended.subscription_id, key=key())
        waiting = begin(NEEDS_CONFIRMATION)
        listed = {state.subscription_id: state for state in seam.client.live_subscriptions()}
        assert set(listed) == {running.subscription_id, waiting.subscription_id}
        assert listed[running.subscription_id] == running

    def test_returned_payments_are_listed_by_the_time_of_the_refund_or_dispute(
        self, seam: SeamCase, begin: Begin
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
    def test_undelivered_events_are_listed_oldest_first(self, seam: SeamCase, begin: Begin, key: Key) -> None:
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
