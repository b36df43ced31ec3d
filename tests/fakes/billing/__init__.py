"""
A Stripe in memory behind the seam of `payments.stripe`.

The suite of `tests/payments/stripe` holds it to what the SDK returns. It collects once
per invoice, carries no balance from one invoice to the next and prorates nothing.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta

from tests.fakes.billing.account import ENDED, Card, new_id
from tests.fakes.billing.client import AccountClient

__all__ = ["FakeBilling"]


class FakeBilling(AccountClient):
    """The client, and the controls of `tests.payments.stripe_accounts.StripeAccount` over the same account."""

    @contextmanager
    def away(self) -> Iterator[None]:
        """Make Stripe unreachable inside the block."""
        self._is_away = True
        try:
            yield
        finally:
            self._is_away = False

    def now(self) -> datetime:
        return self._now

    def pass_time(self, seconds: int) -> None:
        target = self._now + timedelta(seconds=seconds)
        while (due := self._next_due(target)) is not None:
            self._now, act = due
            act()
        self._now = target

    def capture(self, customer_id: str, card: str = "pm_card_visa") -> str:
        decline_code = "generic_decline" if "Fail" in card else ""
        captured = Card(new_id("pm"), decline_code=decline_code, needs_confirmation="authentication" in card)
        self._customer(customer_id).cards.append(captured)
        identifier = new_id("seti")
        self._setups[identifier] = (customer_id, captured.id)
        self._emit("setup_intent.succeeded", identifier)
        return identifier

    def decline_from_now(self, payment_method_id: str, code: str | None) -> None:
        for customer in self._customers.values():
            for card in customer.cards:
                if card.id == payment_method_id:
                    card.decline_code = code or ""

    def delete_customer(self, customer_id: str) -> None:
        self._count("delete_customer")
        if self._is_deleted(customer_id):
            return
        customer = self._customer(customer_id)
        for subscription in self._subscriptions.values():
            if subscription.customer is customer and subscription.status not in ENDED:
                self._end(subscription, self._now)
        customer.is_deleted = True
        self._emit("customer.deleted", customer_id)

    def confirm(self, client_secret: str) -> None:
        intent = client_secret.split("_secret_")[0]
        invoice = next(row for row in self._invoices.values() if row.intent == intent)
        self._mark_paid(invoice, invoice.amount)

    def fail_refund(self, refund: str) -> None:
        intent, amount = self._refunds[refund]
        self._move("refund_failure", intent, amount)
        self._refunds[refund][1] = 0
        self._emit("refund.failed", refund)

    def dispute(self, payment_intent: str, amount: int | None = None, *, withdraw: bool = True) -> str:
        left = self._paid_with(payment_intent) - self.refunded(payment_intent)
        identifier = new_id("du")
        self.disputes[identifier] = [payment_intent, amount or left, False]
        self._begun[identifier] = self._now
        self._emit("charge.dispute.created", identifier)
        if withdraw:
            self.withdraw(identifier)
        return identifier

    def withdraw(self, dispute: str) -> None:
        intent, amount, _ = self.disputes[dispute]
        self.disputes[dispute][2] = True
        self._move("dispute", intent, -amount, fee=1500)
        self._emit("charge.dispute.funds_withdrawn", dispute)

    def reinstate(self, dispute: str) -> None:
        intent, amount, _ = self.disputes[dispute]
        self.disputes[dispute][2] = False
        self._move("dispute_reversal", intent, amount, fee=-1500)
        self._emit("charge.dispute.funds_reinstated", dispute)

    def pay_out_of_band(self, invoice: str) -> None:
        self._mark_paid(self._invoice(invoice), 0)

    def lose_deliveries(self) -> None:
        self._loses_deliveries = True
