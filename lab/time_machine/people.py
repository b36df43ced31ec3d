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
        self.capture()
        self.subscribe()

    def acts(self) -> list[Callable[[], object]]:
        """Return what may happen."""
        return [
            self.subscribe, self.subscribe, self.cancel, self.capture, self.call, self.call, self.call, self.refund,
            self.refund_part, self.dispute, self.win, self.decline, self.accept, self.raise_quantity, self.add_line,
            self.pause, self.resume, self.buy, self.buy, self.buy, self.top_up, self.top_up, self.stop_top_up,
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
        disputes = self._v1.disputes.list({"payment_intent": self._payment()}).data
        self.controls.close_dispute(disputes[0].id, won=True)

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

    def pause(self) -> None:
        self._v1.subscriptions.update(self._subscription().id, {"pause_collection": {"behavior": "void"}})

    def resume(self) -> None:
        self._v1.subscriptions.update(self._subscription().id, {"pause_collection": ""})

    def _change_cards(self, code: str | None) -> None:
        for card in self._v1.payment_methods.list({"customer": self._customer}).data:
            self.controls.change_card(card.id, decline_code=code)

    def _subscription(self) -> Any:
        return self._v1.subscriptions.list({"customer": self._customer}).data[0]

    def _payment(self) -> str:
        """Return one of the last payments."""
        charges = self._v1.charges.list({"customer": self._customer, "limit": 4}).data
        return str(random.choice([row for row in charges if row.paid]).payment_intent)  # noqa: S311
