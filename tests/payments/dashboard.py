"""What a clerk does at Stripe's dashboard: subscriptions, items and prices that the service did not order."""

from dataclasses import dataclass
from typing import Any

from django.conf import settings

from tests.payments.payers import Payer
from tests.payments.stripe_accounts import DoubleAccount


@dataclass
class Clerk:
    """A clerk of the operator with the dashboard of the Stripe account."""

    double: DoubleAccount

    def price(self, amount: int, *, product: str = "", currency: str = "usd") -> dict[str, Any]:
        """Return a monthly price of our product, made on first use, or of another one."""
        product = product or settings.STRIPE_PRODUCT_ID
        if product not in {row.id for row in self.double.v1.products.list({"limit": 100}).data}:
            self.double.v1.products.create({"id": product, "name": product})
        recurring = {"interval": "month"}
        return {"currency": currency, "product": product, "unit_amount": amount, "recurring": recurring}

    def subscribe(self, payer: Payer, amount: int, *, product: str = "", quantity: int = 1) -> str:
        """Make a subscription for the customer, and return its id."""
        return self.subscribe_to(
            payer, {"price_data": self.price(amount, product=product), "quantity": quantity}
        )

    def subscribe_to(self, payer: Payer, *items: dict[str, Any]) -> str:
        """Make a subscription of these items, and return its id."""
        customer = payer.customer.stripe_customer_id
        card = self.double.v1.payment_methods.list({"customer": customer}).data[0].id
        parameters = {"customer": customer, "items": list(items), "default_payment_method": card}
        return str(self.double.v1.subscriptions.create(parameters).id)

    def add_line(self, payer: Payer, amount: int, *, subscription: str = "", product: str = "") -> None:
        """Let the next invoice collect another amount, of a product or of none."""
        what: dict[str, Any] = {"amount": amount, "currency": "usd"}
        if product:
            what = {"price_data": {"currency": "usd", "product": product, "unit_amount": amount}}
        if subscription:
            what["subscription"] = subscription
        self.double.v1.invoice_items.create({"customer": payer.customer.stripe_customer_id, **what})

    def coupon(self, percent_off: int, *, duration: str = "forever") -> str:
        """Make a coupon and return its id."""
        return str(self.double.v1.coupons.create({"percent_off": percent_off, "duration": duration}).id)

    def items(self, subscription: str) -> list[Any]:
        """Return the items of a subscription."""
        return list(self.double.v1.subscriptions.retrieve(subscription)["items"].data)

    def change(self, subscription: str, *items: dict[str, Any], **parameters: Any) -> None:
        """Change items and other settings of a subscription."""
        changes = {"items": list(items)} if items else {}
        self.double.v1.subscriptions.update(subscription, {**changes, **parameters})
