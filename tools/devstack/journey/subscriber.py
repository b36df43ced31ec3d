"""A wallet that subscribes and buys a pack; each step is compared with the payment provider's records."""

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import floor

from credit_relay_client import RelayProblem
from devstack.console import echo
from devstack.environment import CREDITS_PER_MAJOR_UNIT
from devstack.journey.checks import Period, expect, text_of, until
from devstack.journey.dashboard import Dashboard, exact
from devstack.stripe_account import StripeAccount, StripeObject
from devstack.wallet import Wallet

_CARD = "pm_card_visa"


@dataclass
class Subscriber:
    """A wallet, and the credits that its quota must show after all steps so far, within `patience` seconds."""

    wallet: Wallet
    provider: StripeAccount
    credits: int
    patience: float
    subscription: str = ""

    def create_customer(self) -> None:
        """Get or create the customer."""
        link = self.wallet.create_customer()
        expect("walletAddress", link["walletAddress"], self.wallet.profile_address)
        record = self.provider.customer(link["paymentsCustomerId"])
        expect("the profile address of the customer", record["metadata"]["address"], link["walletAddress"])
        echo(f"  ✓ customer {record['id']} belongs to {link['walletAddress']}")

    def subscribe(self, amount: int) -> None:
        """Create a subscription; capture a card if the service requires one."""
        try:
            result = self.wallet.upsert_subscription(amount)
        except RelayProblem as refusal:
            expect("the refusal", (refusal.status, refusal.code), (402, "payment-method-required"))
            echo(f"  ✓ no subscription without a card: {refusal}")
            self._capture_card()
            result = self.wallet.upsert_subscription(amount)
        expect("a new subscription", result["subscriptionId"] != self.subscription, True)
        self.subscription = result["subscriptionId"]
        record = self._compare(result, amount)
        expect("the status at the provider", record["status"], "active")
        echo(f"  ✓ subscribed: {record['id']} at {result['subscriptionAmount']} a month")

    def change(self, amount: int) -> None:
        """Change the amount from the next period; this also undoes a cancellation."""
        invoices = self.provider.invoices(self.subscription)
        result = self.wallet.upsert_subscription(amount)
        expect("the changed subscription", result["subscriptionId"], self.subscription)
        record = self._compare(result, amount)
        expect("cancel_at_period_end", record["cancel_at_period_end"], False)
        expect("the invoices after the change", self.provider.invoices(self.subscription), invoices)
        echo(f"  ✓ changed to {result['subscriptionAmount']} from the next period on, nothing charged now")

    def cancel(self, *, immediately: bool) -> None:
        """Cancel the subscription, at once or at the end of its period."""
        result = self.wallet.cancel_subscription(immediately=immediately)
        record = self.provider.subscription(self.subscription)
        expected = {
            "success": True,
            "customerIdCancelledFor": record["customer"],
            "cancelledInstantly": immediately,
        }
        expect("the cancellation", result, expected)
        expect("the status at the provider", record["status"], "canceled" if immediately else "active")
        expect("cancel_at_period_end", record["cancel_at_period_end"], not immediately)
        echo(f"  ✓ cancelled {'at once' if immediately else 'at the end of the period'}: {record['id']}")

    def check_payout(self, number: int, amount: int, *, counts: bool) -> int:
        """
        Wait for the payout of the `number`th invoice and return its credits.

        `counts` is whether the period is current by the service's clock.
        """
        worth, period = amount * CREDITS_PER_MAJOR_UNIT // 100, self.period
        self.credits += worth
        self.check_quota(total=worth if counts else 0, reset=period.end if counts else -1)
        invoices = self.provider.invoices(self.subscription)
        expect("the number of invoices", len(invoices), number)
        invoice, line = invoices[-1], invoices[-1]["lines"]["data"][0]
        expect("what the invoice collected", (invoice["status"], invoice["amount_paid"]), ("paid", amount))
        expect("the invoice's period", (line["period"]["start"], line["period"]["end"]), tuple(period))
        echo(f"    for invoice {invoice['id']}: {amount} paid for {period}, which is {worth} credits")
        return worth

    def buy_pack(self) -> None:
        """Buy a pack with the captured card; the same request again buys nothing more."""
        relay, profile = self.wallet.relay, self.wallet.profile_address
        pack = secrets.choice([pack for pack in relay.packs(profile)["packs"] if pack["currency"] == "usd"])
        worth = pack["cost"] * CREDITS_PER_MAJOR_UNIT // 100 + pack["bonusCredits"]
        expect("the credits of the pack", pack["credits"], worth)
        key = secrets.token_hex(16)
        purchase = relay.purchase_credits(profile, {"pack": pack["pack"]}, key)
        bought = purchase["status"], purchase["cost"], purchase["credits"]
        expect("the purchase", bought, ("paid", pack["cost"], worth))
        self.credits += worth
        expect(
            "the purchase of the same key",
            relay.purchase_credits(profile, {"pack": pack["pack"]}, key),
            purchase,
        )
        invoices = self.provider.invoices_of_purchase(purchase["purchaseId"])
        expect("what its invoices collected", [row["amount_paid"] for row in invoices], [pack["cost"]])
        echo(
            f"  ✓ pack {pack['pack']} bought: {pack['amount']} paid by invoice {invoices[0]['id']}, {worth} credits"
        )
        self.check_quota(total=0, reset=-1)

    def spend(self, call: Callable[[Wallet], int]) -> None:
        """Deduct the cost of a relay call and check its cashback."""
        due = exact(self.wallet.account()["cashbackRemainder"])
        cost = call(self.wallet)
        self.credits += self._credits_back(cost, due) - cost

    def check_quota(self, *, total: int, reset: int) -> None:
        """Wait until the service's quota has these values."""
        keys = ("quota", "totalQuota", "resetDate")

        def read() -> tuple[int, ...]:
            quota = self.wallet.quota()
            return quota["quota"], quota["totalQuota"], quota["resetDate"]

        until(f"({', '.join(keys)})", read, (self.credits, total, reset), patience=self.patience)
        when = "" if reset < 0 else f" ({text_of(reset)})"
        echo(f"  ✓ quota: {self.credits} credits, total {total}, reset {reset}{when}")

    @property
    def period(self) -> Period:
        """The current period at the provider."""
        item = self.provider.subscription(self.subscription)["items"]["data"][0]
        return Period(item["current_period_start"], item["current_period_end"])

    def _credits_back(self, cost: int, due: Fraction) -> int:
        """Check the cashback of a call on the dashboard; its experience is already included."""
        dashboard = Dashboard.of(self.wallet)
        fraction = min(Fraction(1), dashboard.bonus("CREDITS_BACK"))
        returned = floor(due + cost * fraction)
        newest = dashboard.newest or {}
        if returned:
            entry = newest.get("credit_source"), newest.get("credits_earned")
            expect("what came back of the cost", entry, ("CREDITS_BACK", returned))
            echo(
                f"    cashback of {float(fraction):.2%} of {cost}: {returned} credits, in an entry of their own"
            )
        return returned

    def _capture_card(self) -> None:
        intent = self.provider.capture_card(self.wallet.setup_intent(), _CARD)
        expect("the setup intent", intent["status"], "succeeded")
        echo(f"  ✓ card captured: {intent['id']} keeps {intent['payment_method']}")

    def _compare(self, answer: StripeObject, amount: int) -> StripeObject:
        record = self.provider.subscription(self.subscription)
        expect("subscriptionFor", answer["subscriptionFor"], record["customer"])
        expect("subscriptionAmount", answer["subscriptionAmount"], f"${amount // 100}.{amount % 100:02}")
        expect("the amount at the provider", record["items"]["data"][0]["price"]["unit_amount"], amount)
        return record
