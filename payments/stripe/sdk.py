"""Stripe through its own SDK, with our timeouts, retries and idempotency keys."""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import Any

import stripe

from payments.errors import BillingUnavailable
from payments.stripe import reading, webhooks
from payments.stripe.faults import translated
from payments.stripe.modes import is_live_key
from payments.stripe.ordering import is_made_by, keyed, once
from payments.stripe.states import CustomerState, InvoiceState, MoneyBack, ReceivedEvent, SubscriptionState

# What our readers were written for; a newer package alone does not change what Stripe answers.
API_VERSION = "2026-10-28.endive"
_NETWORK_RETRIES = 2
_DAY_SECONDS = 86_400
_PRODUCT_NAME = "Relay credits"
_ENDED = {"canceled", "incomplete_expired"}
_PAGE = {"limit": 100}
_PAYMENTS = ["payments"]
_LATEST_PAYMENTS = ["latest_invoice.payments"]


class StripeBillingClient:
    """A `BillingClient` over the SDK, at an API version of our own. Safe to share between threads."""

    def __init__(
        self,
        *,
        secret_key: str,
        webhook_secrets: Sequence[str],
        api_base: str,
        timeout_seconds: int,
        product_id: str,
    ) -> None:
        self._webhook_secrets, self._product_id = tuple(webhook_secrets), product_id
        self._timeout_seconds = timeout_seconds
        self._is_live = is_live_key(secret_key)
        self._product_is_there = False
        self._client = (
            stripe.StripeClient(
                secret_key,
                stripe_version=API_VERSION,
                base_addresses={"api": api_base},
                max_network_retries=_NETWORK_RETRIES,
                http_client=stripe.RequestsClient(timeout=timeout_seconds),
            )
            if secret_key
            else None
        )

    @property
    def _v1(self) -> Any:
        if self._client is None:
            raise BillingUnavailable("Payments are not set up on this service.", retry_after=3600)
        return self._client.v1

    def create_customer(self, *, profile_address: str, user_id: str, key: str) -> str:
        metadata = {"address": profile_address, "user": user_id, "operation": key}

        def find() -> str | None:
            recent = self._v1.customers.list({"created": {"gte": _seconds_ago(_DAY_SECONDS)}, "limit": 100})
            return next((str(row.id) for row in recent.auto_paging_iter() if is_made_by(row, key)), None)

        def order(fresh_key: str) -> str:
            parameters = {"description": profile_address, "metadata": metadata}
            return str(self._v1.customers.create(parameters, keyed(fresh_key)).id)

        return once(key=key, order=order, find=find, patience_seconds=self._timeout_seconds)

    def create_setup_intent(self, *, customer_id: str) -> str:
        with translated():
            intent = self._v1.setup_intents.create(
                {
                    "customer": customer_id,
                    "usage": "off_session",
                    "automatic_payment_methods": {"enabled": True},
                }
            )
            return str(intent.client_secret)

    def has_payment_method(self, *, customer_id: str) -> bool:
        with translated():
            default = self._v1.customers.retrieve(customer_id).invoice_settings.default_payment_method
            newest = self._newest_card(customer_id)
            if newest is not None and newest != default:
                self._make_default(customer_id, newest)
            return bool(newest or default)

    def create_subscription(
        self, *, customer_id: str, amount_minor: int, currency: str, cancels_at_period_end: bool, key: str
    ) -> SubscriptionState:
        parameters = {
            "customer": customer_id,
            "items": [{"price_data": self._price(amount_minor, currency)}],
            "payment_behavior": "allow_incomplete",
            "off_session": True,
            "billing_mode": {"type": "flexible"},
            "cancel_at_period_end": cancels_at_period_end,
            "metadata": {"operation": key},
        }

        def find() -> str | None:
            rows = self._v1.subscriptions.list({"customer": customer_id, "status": "all", "limit": 100})
            return next((str(row.id) for row in rows.auto_paging_iter() if is_made_by(row, key)), None)

        def order(fresh_key: str) -> str:
            return str(self._v1.subscriptions.create(parameters, keyed(fresh_key)).id)

        return self._read_anew(once(key=key, order=order, find=find, patience_seconds=self._timeout_seconds))

    def update_subscription(
        self,
        *,
        subscription_id: str,
        item_id: str,
        amount_minor: int | None,
        currency: str,
        cancels_at_period_end: bool,
        key: str,
    ) -> SubscriptionState:
        parameters: dict[str, Any] = {
            "cancel_at_period_end": cancels_at_period_end,
            "proration_behavior": "none",
        }
        if amount_minor is not None:
            # Without the item's id Stripe would add a second item, and bill both.
            parameters["items"] = [{"id": item_id, "price_data": self._price(amount_minor, currency)}]

        def find() -> str | None:
            state = self._subscription(subscription_id)
            as_asked = (
                amount_minor in {None, state.amount_minor}
                and state.cancels_at_period_end == cancels_at_period_end
            )
            return subscription_id if as_asked else None

        def order(fresh_key: str) -> str:
            return str(self._v1.subscriptions.update(subscription_id, parameters, keyed(fresh_key)).id)

        return self._read_anew(once(key=key, order=order, find=find, patience_seconds=self._timeout_seconds))

    def cancel_subscription(self, *, subscription_id: str, key: str) -> SubscriptionState:
        # Stripe takes no idempotency key here and needs none: what is cancelled stays so.
        with translated():
            state = self._subscription(subscription_id)
            if state.status in _ENDED:
                return state
            try:
                self._v1.subscriptions.cancel(subscription_id, {"prorate": False, "invoice_now": False})
            except stripe.InvalidRequestError:
                # It was cancelled all the same where the first try's answer was lost.
                state = self._subscription(subscription_id)
                if state.status not in _ENDED:
                    raise
                return state
            return self._subscription(subscription_id)

    def retrieve_subscription(self, *, subscription_id: str) -> SubscriptionState:
        return self._read_anew(subscription_id)

    def list_subscriptions(self, *, customer_id: str) -> list[SubscriptionState]:
        with translated():
            rows = self._v1.subscriptions.list({"customer": customer_id, "status": "all", "limit": 100})
            return [reading.subscription_state(row) for row in rows.auto_paging_iter()]

    def pay_open_invoice(self, *, invoice_id: str) -> SubscriptionState | None:
        with translated():
            invoice = self._v1.invoices.retrieve(invoice_id)
            if invoice.status != "open":
                return None
            self._pay(invoice_id)
            subscription_id = reading.invoice_state(invoice).subscription_id
            return self._subscription(subscription_id) if subscription_id else None

    def use_newest_card(self, *, customer_id: str) -> None:
        with translated():
            payment_method_id = self._newest_card(customer_id)
            if payment_method_id is None:
                return
            self._make_default(customer_id, payment_method_id)
            rows = self._v1.subscriptions.list({"customer": customer_id, "status": "all", "limit": 100})
            for row in rows.auto_paging_iter():
                if row.status not in _ENDED:
                    self._v1.subscriptions.update(row.id, {"default_payment_method": payment_method_id})

    def payment_method_of_setup(self, *, setup_intent_id: str) -> tuple[str, str]:
        with translated():
            intent = self._v1.setup_intents.retrieve(setup_intent_id)
            return reading.reference(intent.customer), reading.reference(intent.payment_method)

    def retrieve_invoice(self, *, invoice_id: str) -> InvoiceState:
        with translated():
            return reading.invoice_state(self._v1.invoices.retrieve(invoice_id, {"expand": _PAYMENTS}))

    def paid_invoices_since(self, *, since: datetime) -> Iterator[InvoiceState]:
        with translated():
            rows = self._v1.invoices.list(
                {
                    "status": "paid",
                    "created": {"gte": int(since.timestamp())},
                    "limit": 100,
                    "expand": ["data.payments"],
                }
            )
            yield from map(reading.invoice_state, rows.auto_paging_iter())

    def customers(self) -> Iterator[CustomerState]:
        with translated():
            yield from map(reading.customer_state, self._v1.customers.list(_PAGE).auto_paging_iter())

    def living_subscriptions(self) -> Iterator[SubscriptionState]:
        with translated():
            # Without a status Stripe leaves out the cancelled ones alone.
            rows = self._v1.subscriptions.list(_PAGE).auto_paging_iter()
            yield from (reading.subscription_state(row) for row in rows if row.status not in _ENDED)

    def payments_gone_back_since(self, *, since: datetime) -> Iterator[str]:
        begun = {**_PAGE, "created": {"gte": int(since.timestamp())}}
        with translated():
            for noun in (self._v1.refunds, self._v1.disputes):
                named = (reading.reference(row.payment_intent) for row in noun.list(begun).auto_paging_iter())
                yield from (intent for intent in named if intent)

    def money_back(self, *, payment_intent_id: str) -> MoneyBack:
        with translated():
            refunds = self._v1.refunds.list({"payment_intent": payment_intent_id, "limit": 100})
            disputes = self._v1.disputes.list({"payment_intent": payment_intent_id, "limit": 100})
            return MoneyBack(
                payment_intent_id=payment_intent_id,
                refunded_minor=sum(
                    row.amount for row in refunds.auto_paging_iter() if row.status in {"succeeded", "pending"}
                ),
                disputed_minor=sum(row.amount for row in disputes.auto_paging_iter() if _is_withdrawn(row)),
            )

    def payment_intent_of(self, *, object_id: str) -> str:
        with translated():
            readers: dict[str, Callable[[str], Any]] = {
                "re": self._v1.refunds.retrieve,
                "pyr": self._v1.refunds.retrieve,
                "dp": self._v1.disputes.retrieve,
                "du": self._v1.disputes.retrieve,
                "ch": self._v1.charges.retrieve,
                "py": self._v1.charges.retrieve,
            }
            reader = readers.get(object_id.split("_", 1)[0])
            return reading.reference(reader(object_id).payment_intent) if reader else ""

    def undelivered_events(
        self, *, since: datetime, types: tuple[str, ...]
    ) -> Iterator[tuple[ReceivedEvent, bytes]]:
        with translated():
            rows = self._v1.events.list(
                {
                    "types": list(types),
                    "delivery_success": False,
                    "created": {"gte": int(since.timestamp())},
                    "limit": 100,
                }
            )
            for row in reversed(list(rows.auto_paging_iter())):
                told = row.to_dict()
                yield webhooks.event_of(told), json.dumps(told, default=str).encode()

    def read_webhook(self, *, body: bytes, signature: str) -> ReceivedEvent:
        return webhooks.read(
            body=body, signature=signature, secrets=self._webhook_secrets, is_live=self._is_live
        )

    def _read_anew(self, subscription_id: str) -> SubscriptionState:
        """Read what an order was about: to a repeated key Stripe answers what was true the first time."""
        with translated():
            return self._subscription(subscription_id)

    def _subscription(self, subscription_id: str) -> SubscriptionState:
        return self._explained(self._v1.subscriptions.retrieve(subscription_id, {"expand": _LATEST_PAYMENTS}))

    def _pay(self, invoice_id: str) -> None:
        try:
            self._v1.invoices.pay(invoice_id, {"off_session": True})
        except stripe.CardError:
            pass  # A decline is told by the subscription's state, as after creation.
        except stripe.InvalidRequestError:
            # Another request was faster.
            if self._v1.invoices.retrieve(invoice_id).status == "open":
                raise

    def _explained(self, found: Any) -> SubscriptionState:
        """Return the state, with what an incomplete subscription waits for."""
        if found.status != "incomplete" or isinstance(found.latest_invoice, str | None):
            return reading.subscription_state(found)
        intent_id = reading.payment_intent_of_invoice(found.latest_invoice)
        if not intent_id:
            return reading.subscription_state(found)
        intent = self._v1.payment_intents.retrieve(intent_id)
        failure = intent.last_payment_error
        declined = (getattr(failure, "decline_code", None) or failure.code) if failure else "generic_decline"
        # A bank may also decline what it wants confirmed; the wallet confirms the same payment then.
        if intent.status == "requires_action" or declined == "authentication_required":
            return reading.subscription_state(found, client_secret=str(intent.client_secret))
        return reading.subscription_state(found, decline_code=str(declined))

    def _price(self, amount_minor: int, currency: str) -> dict[str, Any]:
        self._ensure_product()
        return {
            "currency": currency,
            "product": self._product_id,
            "unit_amount": amount_minor,
            "recurring": {"interval": "month"},
        }

    def _ensure_product(self) -> None:
        """Make the one product on first use; Stripe refuses a second one of the same id, which is as good."""
        if self._product_is_there:
            return
        with translated():
            try:
                self._v1.products.create({"id": self._product_id, "name": _PRODUCT_NAME})
            except stripe.InvalidRequestError as error:
                if error.code != "resource_already_exists":
                    raise
        self._product_is_there = True

    def _newest_card(self, customer_id: str) -> str | None:
        cards = self._v1.customers.payment_methods.list(customer_id, {"type": "card", "limit": 1}).data
        return str(cards[0].id) if cards else None

    def _make_default(self, customer_id: str, payment_method_id: str) -> None:
        self._v1.customers.update(
            customer_id, {"invoice_settings": {"default_payment_method": payment_method_id}}
        )


def _is_withdrawn(dispute: Any) -> bool:
    """Tell whether the disputed sum is out of our account right now: taken, and not reinstated since."""
    moved = [int(entry.amount) for entry in dispute.balance_transactions or []]
    return sum(moved) < 0


def _seconds_ago(seconds: int) -> int:
    return int(time.time()) - seconds
