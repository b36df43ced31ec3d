"""A wallet that subscribes, with checks of each step against the payment provider's own records."""

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
    """A wallet and the credits that its quota must show after all steps so far, within `patience` seconds."""

    wallet: Wallet
    provider: StripeAccount
    credits: int
    patience: float
    subscription: str = ""

    def create_customer(self) -> None:
        """Have a customer created, or get the one there is."""
        link = self.wallet.create_customer()
        expect("walletAddress", link["walletAddress"], self.wallet.profile_address)
        record = self.provider.customer(link["paymentsCustomerId"])
        expect("the profile address of the customer", record["metadata"]["address"], link["walletAddress"])
        echo(f"  ✓ customer {record['id']} belongs to {link['walletAddress']}")

    def subscribe(self, amount: int) -> None:
        """Begin a subscription; a card is captured when the service asks for one."""
        try:
            answer = self.wallet.upsert_subscription(amount)
        except RelayProblem as refusal:
            expect("the refusal", (refusal.status, refusal.code), (402, "payment-method-required"))
            echo(f"  ✓ no subscription without a card: {refusal}")
            self._capture_card()
            answer = self.wallet.upsert_subscription(amount)
        expect("a new subscription", answer["subscriptionId"] != self.subscription, True)
        self.subscription = answer["subscriptionId"]
        record = self._compare(answer, amount)
        expect("the status at the provider", record["status"], "active")
        echo(f"  ✓ subscribed: {record['id']} at {answer['subscriptionAmount']} a month")

    def change(self, amount: int) -> None:
        """Change the amount from the next period on; this also withdraws a cancellation."""
        invoices = self.provider.invoices(self.subscription)
        answer = self.wallet.upsert_subscription(amount)
        expect("the changed subscription", answer["subscriptionId"], self.subscription)
        record = self._compare(answer, amount)
        expect("cancel_at_period_end", record["cancel_at_period_end"], False)
        expect("the invoices after the change", self.provider.invoices(self.subscription), invoices)
        echo(f"  ✓ changed to {answer['subscriptionAmount']} from the next period on, nothing charged now")

    def cancel(self, *, immediately: bool) -> None:
        """End the subscription, at once or with its period."""
        answer = self.wallet.cancel_subscription(immediately=immediately)
        record = self.provider.subscription(self.subscription)
        expected = {
            "success": True,
            "customerIdCancelledFor": record["customer"],
            "cancelledInstantly": immediately,
        }
        expect("the cancellation", answer, expected)
        expect("the status at the provider", record["status"], "canceled" if immediately else "active")
        expect("cancel_at_period_end", record["cancel_at_period_end"], not immediately)
        echo(f"  ✓ cancelled {'at once' if immediately else 'at the end of the period'}: {record['id']}")

    def check_payout(self, number: int, amount: int, *, counts: bool) -> int:
        """
        Wait for the payout of the `number`th invoice and return its credits.

        `counts` says whether the month is running by the clock of the service.
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

    def spend(self, call: Callable[[Wallet], int]) -> None:
        """Pay a relay call with credits, of which badges and modifiers give a part back."""
        due = exact(self.wallet.account()["cashbackRemainder"])
        cost = call(self.wallet)
        self.credits += self._credits_back(cost, due) - cost

    def check_quota(self, *, total: int, reset: int) -> None:
        """Wait until the service answers this quota."""
        keys = ("quota", "totalQuota", "resetDate")

        def read() -> tuple[int, ...]:
            quota = self.wallet.quota()
            return quota["quota"], quota["totalQuota"], quota["resetDate"]

        until(f"({', '.join(keys)})", read, (self.credits, total, reset), patience=self.patience)
        when = "" if reset < 0 else f" ({text_of(reset)})"
        echo(f"  ✓ quota: {self.credits} credits, total {total}, reset {reset}{when}")

    @property
    def period(self) -> Period:
        """The running period at the provider."""
        item = self.provider.subscription(self.subscription)["items"]["data"][0]
        return Period(item["current_period_start"], item["current_period_end"])

    def _credits_back(self, cost: int, due: Fraction) -> int:
        """Check the credits back of a call on the dashboard; the experience that it gave counts already."""
        dashboard = Dashboard.of(self.wallet)
        fraction = min(Fraction(1), dashboard.bonus("CREDITS_BACK"))
        returned = floor(due + cost * fraction)
        newest = dashboard.newest or {}
        if returned:
            entry = newest.get("credit_source"), newest.get("credits_earned")
            expect("what came back of the cost", entry, ("CREDITS_BACK", returned))
            echo(f"    {float(fraction):.2%} of {cost} came back: {returned} credits, an earning of its own")
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
