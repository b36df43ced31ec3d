"""A person with a wallet, the clerk at the dashboard and the bank, all acting on one subscription."""

import random
import time
from collections.abc import Callable
from typing import Any

import stripe

from credit_relay_client import RelayProblem
from devstack.services.stripe_double import StripeDouble
from devstack.stripe_account import StripeAccount
from devstack.wallet import Wallet
from devstack.world.abi import calldata

_CARD = "pm_card_visa"
_CALL_SECONDS = 60
_CONSENT = "Buy this pack whenever my credits run low."
# More than anybody has, so that top-up buys up to the month's limit.
_THRESHOLD, _LIMIT = 10**12, 1_500
# The product's name in the service's settings, and how much less a clerk's coupon makes it.
PRODUCT, _PERCENT_OFF = "credit-relay-subscription", 20
_FINAL = {"Success", "Failed", "Expired", "Cancelled", "ExecutedExternally"}


class Person:
    """The owner of a profile who subscribes, and what may happen to them."""

    def __init__(self, wallet: Wallet, double: StripeDouble) -> None:
        self.wallet, self.controls = wallet, double.controls
        self._account = StripeAccount(double.url, double.secret_key)
        self._v1: Any = stripe.StripeClient(double.secret_key, base_addresses={"api": double.url}).v1
        self._customer = ""

    def begin(self) -> None:
        """Capture a card and subscribe."""
        self._customer = str(self.wallet.create_customer()["paymentsCustomerId"])
        self._v1.products.create({"id": self._hats, "name": "Hats"})
        self.capture()
        self.subscribe()

    def acts(self) -> list[Callable[[], object]]:
        """Return what may happen."""
        return [
            self.subscribe, self.subscribe, self.cancel, self.capture, self.call, self.call, self.call, self.refund,
            self.refund_part, self.dispute, self.win, self.decline, self.accept, self.raise_quantity, self.add_line,
            self.pause, self.resume, self.buy, self.buy, self.buy, self.top_up, self.top_up, self.stop_top_up,
            self.lose, self.reinstate_part, self.fail_refund, self.change_price, self.add_hats, self.discount,
            self.end_discounts, self.end_with_month, self.end_at_once, self.void, self.detach, self.add_line_of_ours,
            self.invoice, self.invoice_hats,
        ]  # fmt: skip

    def subscribe(self) -> None:
        amount = random.randint(500, 20_000)  # noqa: S311 (not a secret)
        try:
            self.wallet.upsert_subscription(amount)
        except RelayProblem as refusal:
            if refusal.code not in {"payment-method-required", "card-declined"}:
                raise
            self.capture()
            self.wallet.upsert_subscription(amount)

    def cancel(self) -> None:
        self.wallet.cancel_subscription(immediately=random.random() < 0.5)  # noqa: S311

    def capture(self) -> None:
        self._account.capture_card(self.wallet.setup_intent(), _CARD)

    def buy(self) -> None:
        amount = random.randint(500, 5_000)  # noqa: S311
        self.wallet.relay.purchase_credits(self.wallet.profile_address, {"amount": amount, "currency": "usd"})

    def top_up(self) -> None:
        self.wallet.relay.set_top_up(
            self.wallet.profile_address,
            {
                "enabled": True,
                "threshold": _THRESHOLD,
                "pack": "usd-5",
                "monthlyLimit": _LIMIT,
                "consent": _CONSENT,
            },
        )

    def stop_top_up(self) -> None:
        self.wallet.relay.set_top_up(self.wallet.profile_address, {"enabled": False})

    def call(self) -> None:
        """Relay a call and wait for its end."""
        payload = calldata("execute(uint256,address,uint256,bytes)", 0, f"0x{4096:040x}", 1, b"")
        transaction = self.wallet.execute(self.wallet.signed(payload))
        deadline = time.monotonic() + _CALL_SECONDS
        while self.wallet.transaction_status(transaction)["status"] not in _FINAL:
            if time.monotonic() > deadline:
                raise RuntimeError(f"{transaction} has not ended.")
            time.sleep(0.5)

    def refund(self) -> None:
        self.controls.refund(self._payment())

    def refund_part(self) -> None:
        self.controls.refund(self._payment(), 100)

    def dispute(self) -> None:
        self.controls.open_dispute(self._payment())

    def win(self) -> None:
        self.controls.close_dispute(self._dispute(), won=True)

    def lose(self) -> None:
        self.controls.close_dispute(self._dispute(), won=False)

    def reinstate_part(self) -> None:
        self.controls.reinstate_funds(self._dispute(), 100)

    def fail_refund(self) -> None:
        refunds = self._v1.refunds.list({"payment_intent": self._payment()}).data
        self.controls.fail_refund(refunds[0].id)

    def decline(self) -> None:
        self._change_cards("insufficient_funds")

    def accept(self) -> None:
        self._change_cards(None)

    def raise_quantity(self) -> None:
        row = self._subscription()
        item = {"id": row["items"].data[0].id, "quantity": 3}
        self._v1.subscriptions.update(row.id, {"items": [item], "proration_behavior": "always_invoice"})

    def add_line(self) -> None:
        self._v1.invoice_items.create({"customer": self._customer, "amount": 900, "currency": "usd"})

    def add_line_of_ours(self) -> None:
        price = {"currency": "usd", "product": PRODUCT, "unit_amount": 700}
        self._v1.invoice_items.create({"customer": self._customer, "price_data": price})

    def invoice(self) -> None:
        self.controls.create_invoice(self._customer, 800, product=PRODUCT)

    def invoice_hats(self) -> None:
        self.controls.create_invoice(self._customer, 1_100, product=self._hats)

    def change_price(self) -> None:
        item = self._subscription()["items"].data[0].id
        self._change_items({"id": item, **_price(random.randint(500, 9_000), PRODUCT)})  # noqa: S311

    def add_hats(self) -> None:
        self._change_items(_price(1_300, self._hats))

    def discount(self) -> None:
        coupon = self._v1.coupons.create({"percent_off": _PERCENT_OFF, "duration": "forever"})
        self._v1.subscriptions.update(self._subscription().id, {"discounts": [{"coupon": coupon.id}]})

    def end_discounts(self) -> None:
        self._v1.subscriptions.update(self._subscription().id, {"discounts": ""})

    def end_with_month(self) -> None:
        self._v1.subscriptions.update(self._subscription().id, {"cancel_at_period_end": True})

    def end_at_once(self) -> None:
        self._v1.subscriptions.cancel(self._subscription().id)

    def void(self) -> None:
        invoices = self._v1.invoices.list({"customer": self._customer, "status": "open"}).data
        self._v1.invoices.void_invoice(invoices[0].id)

    def detach(self) -> None:
        cards = self._v1.payment_methods.list({"customer": self._customer}).data
        self._v1.payment_methods.detach(cards[0].id)

    def pause(self) -> None:
        self._v1.subscriptions.update(self._subscription().id, {"pause_collection": {"behavior": "void"}})

    def resume(self) -> None:
        self._v1.subscriptions.update(self._subscription().id, {"pause_collection": ""})

    def _change_cards(self, code: str | None) -> None:
        for card in self._v1.payment_methods.list({"customer": self._customer}).data:
            self.controls.change_card(card.id, decline_code=code)

    @property
    def _hats(self) -> str:
        """Another product, which is this customer's alone."""
        return f"hats-{self._customer}"

    def _change_items(self, item: dict[str, Any]) -> None:
        change = {"items": [item], "proration_behavior": "none"}
        self._v1.subscriptions.update(self._subscription().id, change)

    def _dispute(self) -> str:
        return str(self._v1.disputes.list({"payment_intent": self._payment()}).data[0].id)

    def _subscription(self) -> Any:
        return self._v1.subscriptions.list({"customer": self._customer}).data[0]

    def _payment(self) -> str:
        """Return one of the last payments."""
        charges = self._v1.charges.list({"customer": self._customer, "limit": 4}).data
        return str(random.choice([row for row in charges if row.paid]).payment_intent)  # noqa: S311


def _price(amount: int, product: str) -> dict[str, Any]:
    """Return a monthly price."""
    recurring = {"interval": "month"}
    price = {"currency": "usd", "product": product, "unit_amount": amount, "recurring": recurring}
    return {"price_data": price}
