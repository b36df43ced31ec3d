"""The account as cardholders, banks, the dashboard and time move it."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta

from tests.fakes.billing.books import Books
from tests.fakes.billing.things import Card, new


class Levers(Books):
    """The `tests.payments.worlds.World` over the account."""

    @contextmanager
    def away(self) -> Iterator[None]:
        """Let Stripe not answer inside the block."""
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
        declines = "generic_decline" if "Fail" in card else ""
        kept = Card(new("pm"), declines=declines, asks="authentication" in card)
        self._customer(customer_id).cards.append(kept)
        identifier = new("seti")
        self._setups[identifier] = (customer_id, kept.id)
        self._tell("setup_intent.succeeded", identifier)
        return identifier

    def decline_from_now(self, payment_method_id: str, code: str | None) -> None:
        for customer in self._customers.values():
            for card in customer.cards:
                if card.id == payment_method_id:
                    card.declines = code or ""

    def confirm(self, client_secret: str) -> None:
        intent = client_secret.split("_secret_")[0]
        invoice = next(found for found in self._invoices.values() if found.intent == intent)
        self._mark_paid(invoice, invoice.amount)

    def refund(self, payment_intent: str, amount: int | None = None) -> str:
        left = self._paid_with(payment_intent) - self.refunded(payment_intent)
        identifier = new("re")
        self._refunds[identifier] = [payment_intent, amount or left]
        self._begun[identifier] = self._now
        self._tell("refund.created", identifier)
        return identifier

    def fail_refund(self, refund: str) -> None:
        self._refunds[refund][1] = 0
        self._tell("refund.failed", refund)

    def dispute(self, payment_intent: str, amount: int | None = None, *, withdraw: bool = True) -> str:
        left = self._paid_with(payment_intent) - self.refunded(payment_intent)
        identifier = new("du")
        self.disputes[identifier] = [payment_intent, amount or left, False]
        self._begun[identifier] = self._now
        self._tell("charge.dispute.created", identifier)
        if withdraw:
            self.withdraw(identifier)
        return identifier

    def withdraw(self, dispute: str) -> None:
        self.disputes[dispute][2] = True
        self._tell("charge.dispute.funds_withdrawn", dispute)

    def reinstate(self, dispute: str) -> None:
        self.disputes[dispute][2] = False
        self._tell("charge.dispute.funds_reinstated", dispute)

    def pay_out_of_band(self, invoice: str) -> None:
        self._mark_paid(self._invoice(invoice), 0)

    def lose_deliveries(self) -> None:
        self._loses = True
