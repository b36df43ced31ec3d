"""
Orders that are carried out once, whatever becomes of their answers.

Each has an idempotency key, and says how to find what it made in case Stripe failed.

Cards: captured, made the default, and tried on open invoices.

Stripe through its own SDK, with our timeouts, retries and idempotency keys.
"""

import time
from collections.abc import Callable, Sequence
from typing import Any

import stripe

from payments.errors import BillingUnavailable
from payments.models import Subscription
from payments.stripe import webhooks
from payments.stripe.lookups import PAGE, Lookups, is_key_in_use, is_saved_fault, refusal_of, translated
from payments.stripe.states import SubscriptionState

# How many keys are tried where Stripe answers with the saved fault of the one before.
_KEYS = 3
# Between two looks at whether an equal request has ended; the SDK may have paused as well.
_PAUSE_SECONDS = 0.25


def once(
    *, key: str, order: Callable[[str], str], find: Callable[[], str | None], patience_seconds: int
) -> str:
    """
    Give the order under its key and return the id of what was made; where Stripe failed, look for it.

    Stripe keeps a 500 for the key for a day. Once it replays one and nothing was
    made, the order is given again under a key derived from the first. Where an equal request
    is at Stripe right now, its end is waited for, from now on `patience_seconds`.

    Raises:
        BillingUnavailable: Stripe is away or keeps failing; the same order may be given again.
        DomainError: Stripe refuses it.
    """
    gives_up_at = time.monotonic() + patience_seconds
    for number in range(_KEYS):
        try:
            return _given(order, key if number == 0 else f"{key}:{number}", gives_up_at)
        except stripe.StripeError as error:
            if (error.http_status or 0) < 500:
                raise refusal_of(error) from error
            with translated():
                made = find()
            if made is not None:
                return made
            if not is_saved_fault(error):
                raise refusal_of(error) from error
    raise BillingUnavailable("Stripe keeps failing. Repeat the request.", retry_after=60)


def _given(order: Callable[[str], str], key: str, gives_up_at: float) -> str:
    while True:
        try:
            return order(key)
        except stripe.StripeError as error:
            if not is_key_in_use(error) or time.monotonic() > gives_up_at:
                raise
        time.sleep(_PAUSE_SECONDS)


def keyed(key: str) -> dict[str, str]:
    """Return the options of a request that carries the key."""
    return {"idempotency_key": key}


def is_made_by(row: Any, key: str) -> bool:
    """Return whether an order of this key made the customer or subscription: our metadata names it."""
    metadata = getattr(row, "metadata", None)
    return metadata is not None and "operation" in metadata and metadata["operation"] == key


class Cards(Lookups):
    """The account's customers with their cards."""

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

    def pay_open_invoice(self, *, invoice_id: str) -> None:
        with translated():
            if self._v1.invoices.retrieve(invoice_id).status == "open":
                self._pay(invoice_id)

    def use_newest_card(self, *, customer_id: str) -> None:
        with translated():
            payment_method_id = self._newest_card(customer_id)
            if payment_method_id is None:
                return
            self._make_default(customer_id, payment_method_id)
            rows = self._v1.subscriptions.list({**PAGE, "customer": customer_id, "status": "all"})
            for row in rows.auto_paging_iter():
                if row.status not in Subscription.ENDED:
                    self._v1.subscriptions.update(row.id, {"default_payment_method": payment_method_id})

    def payment_method_of_setup(self, *, setup_intent_id: str) -> tuple[str, str]:
        with translated():
            intent = self._v1.setup_intents.retrieve(setup_intent_id)
            return webhooks.reference(intent.customer), webhooks.reference(intent.payment_method)

    def _pay(self, invoice_id: str) -> None:
        try:
            self._v1.invoices.pay(invoice_id, {"off_session": True})
        except stripe.CardError:
            pass  # The subscription's state shows a decline, as after creation.
        except stripe.InvalidRequestError:
            # Another request was faster.
            if self._v1.invoices.retrieve(invoice_id).status == "open":
                raise

    def _newest_card(self, customer_id: str) -> str | None:
        cards = self._v1.customers.payment_methods.list(customer_id, {"type": "card", "limit": 1}).data
        return str(cards[0].id) if cards else None

    def _make_default(self, customer_id: str, payment_method_id: str) -> None:
        self._v1.customers.update(
            customer_id, {"invoice_settings": {"default_payment_method": payment_method_id}}
        )


_DAY_SECONDS = 86_400
_PRODUCT_NAME = "Relay credits"


class StripeBillingClient(Cards):
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
        super().__init__(
            secret_key=secret_key,
            webhook_secrets=webhook_secrets,
            api_base=api_base,
            timeout_seconds=timeout_seconds,
        )
        self._product_id = product_id
        self._product_is_there = False

    def create_customer(self, *, profile_address: str, user_id: str, key: str) -> str:
        metadata = {"address": profile_address, "user": user_id, "operation": key}

        def find() -> str | None:
            recent = self._v1.customers.list({**PAGE, "created": {"gte": _seconds_ago(_DAY_SECONDS)}})
            return next((str(row.id) for row in recent.auto_paging_iter() if is_made_by(row, key)), None)

        def order(fresh_key: str) -> str:
            parameters = {"description": profile_address, "metadata": metadata}
            return str(self._v1.customers.create(parameters, keyed(fresh_key)).id)

        return once(key=key, order=order, find=find, patience_seconds=self._timeout_seconds)

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
            rows = self._v1.subscriptions.list({**PAGE, "customer": customer_id, "status": "all"})
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
            if state.status in Subscription.ENDED:
                return state
            try:
                self._v1.subscriptions.cancel(subscription_id, {"prorate": False, "invoice_now": False})
            except stripe.InvalidRequestError:
                # It was cancelled all the same where the first try's answer was lost.
                state = self._subscription(subscription_id)
                if state.status not in Subscription.ENDED:
                    raise
                return state
            return self._subscription(subscription_id)

    def _price(self, amount_minor: int, currency: str) -> dict[str, Any]:
        self._ensure_product()
        return {
            "currency": currency,
            "product": self._product_id,
            "unit_amount": amount_minor,
            "recurring": {"interval": "month"},
        }

    def _ensure_product(self) -> None:
        """Make the one product on first use; a refusal because the id exists is as good."""
        if self._product_is_there:
            return
        with translated():
            try:
                self._v1.products.create({"id": self._product_id, "name": _PRODUCT_NAME})
            except stripe.InvalidRequestError as error:
                if error.code != "resource_already_exists":
                    raise
        self._product_is_there = True


def _seconds_ago(seconds: int) -> int:
    return int(time.time()) - seconds
