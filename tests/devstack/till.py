"""The payments of the stand-in: as little as keeps the contract, straight over the Stripe double."""

import time
from dataclasses import dataclass
from typing import Any

import stripe

from devstack.services.stack import Services

_GRACE_SECONDS = 72 * 3600
Answer = dict[str, Any]


class TurnedAway(Exception):
    """A refusal: status and code."""

    def __init__(self, status: int, code: str) -> None:
        super().__init__(status, code)
        self.status = status
        self.code = code


@dataclass
class Till:
    """The payments of one profile; `rate` and `sign` can be lies, and so can `dates`."""

    services: Services
    profile_address: str
    rate: int = 1_000
    sign: str = "$"
    dates: int = 0
    customer_id: str = ""

    def customer(self, _body: Answer) -> Answer:
        """Make the customer once."""
        if not self.customer_id:
            self.customer_id = self._v1.customers.create({"metadata": {"address": self.profile_address}}).id
        return {"walletAddress": self.profile_address, "paymentsCustomerId": self.customer_id}

    def setup_intent(self, _body: Answer) -> Answer:
        """Make a setup intent."""
        automatic = {"enabled": True}
        intent = self._v1.setup_intents.create(
            {"customer": self.customer_id, "automatic_payment_methods": automatic}
        )
        return {"clientSecret": intent.client_secret}

    def upsert(self, body: Answer) -> Answer:
        """Begin the subscription, or change it and let it go on."""
        cards = self._v1.customers.payment_methods.list(self.customer_id).data
        if not cards:
            raise TurnedAway(402, "payment-method-required")
        living, amount = self._living(), body["subscriptionCost"]
        item = {"price_data": self._price(amount)}
        if living is None:
            card = cards[0].id
            found = self._v1.subscriptions.create(
                {"customer": self.customer_id, "items": [item], "default_payment_method": card}
            )
        else:
            changed = {**item, "id": living["items"].data[0].id}
            found = self._v1.subscriptions.update(
                living.id, {"items": [changed], "proration_behavior": "none", "cancel_at_period_end": False}
            )
        shown = f"{self.sign}{amount / 100:.2f}"
        return {
            "subscriptionId": found.id,
            "subscriptionFor": self.customer_id,
            "subscriptionAmount": shown,
        }

    def cancel(self, body: Answer) -> Answer:
        """End the subscription."""
        living = self._living()
        if living is None:
            raise TurnedAway(404, "no-subscription")
        if body["cancelImmediately"]:
            self._v1.subscriptions.cancel(living.id)
        else:
            self._v1.subscriptions.update(living.id, {"cancel_at_period_end": True})
        return {
            "success": True,
            "customerIdCancelledFor": self.customer_id,
            "cancelledInstantly": body["cancelImmediately"],
        }

    def paid_out(self) -> int:
        """Return the credits of every paid invoice."""
        return sum(self._worth(invoice) for invoice in self._invoices())

    def running(self) -> tuple[int, int]:
        """Return `totalQuota` and `resetDate` of the newest paid month."""
        newest = next(iter(self._invoices()), None)
        if newest is None:
            return 0, -1
        subscription = self._v1.subscriptions.retrieve(newest.parent.subscription_details.subscription)
        period = newest.lines.data[0].period
        renews = subscription.status == "active" and not subscription.cancel_at_period_end
        end = min(period.end, subscription.ended_at or period.end) + (_GRACE_SECONDS if renews else 0)
        runs = period.start <= time.time() < end
        return (self._worth(newest), period.end + self.dates) if runs else (0, -1)

    def _living(self) -> Any:
        found = self._v1.subscriptions.list({"customer": self.customer_id}).data if self.customer_id else []
        return next(iter(found), None)

    def _invoices(self) -> list[Any]:
        if not self.customer_id:
            return []
        return list(self._v1.invoices.list({"customer": self.customer_id, "status": "paid"}).data)

    def _worth(self, invoice: Any) -> int:
        return int(invoice.amount_paid) * self.rate // 100

    def _price(self, amount: int) -> dict[str, Any]:
        product = self._v1.products.create({"name": "Credits"}).id
        month = {"interval": "month"}
        return {"currency": "usd", "product": product, "unit_amount": amount, "recurring": month}

    @property
    def _v1(self) -> Any:
        double = self.services.stripe
        return stripe.StripeClient(double.secret_key, base_addresses={"api": double.url}).v1
