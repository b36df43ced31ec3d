"""Stripe through its own SDK, with our timeouts, retries and idempotency keys."""

import time
from collections.abc import Sequence
from typing import Any

import stripe

from payments.models import Subscription
from payments.stripe.cards import Cards
from payments.stripe.faults import translated
from payments.stripe.lookups import PAGE
from payments.stripe.ordering import is_made_by, keyed, once
from payments.stripe.states import SubscriptionState

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
