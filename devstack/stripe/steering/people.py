"""People and banks, for the client of the controls."""

from devstack.stripe.steering.channel import Channel, Thing


class People(Channel):
    """Does what cardholders, staff at the dashboard and issuers do."""

    def authenticate(self, intent: str, *, succeeds: bool = True) -> Thing:
        """Let the cardholder agree, or not, to what a setup or payment intent asks for."""
        return self._tell("intents/authenticate", intent=intent, succeeds=succeeds)

    def change_card(self, payment_method: str, **changes: str | None) -> Thing:
        """Change a card: `decline_code` (None: accepted) and `asks` (never, always, on_session)."""
        return self._tell("cards", payment_method=payment_method, **changes)

    def pay_out_of_band(self, invoice: str) -> Thing:
        """Note that an invoice was paid outside of Stripe."""
        return self._tell("invoices/pay_out_of_band", invoice=invoice)

    def bill(self, customer: str, amount: int, currency: str | None = None) -> Thing:
        """Sell a customer something beside all subscriptions, and collect it at once."""
        return self._tell("invoices/bill", customer=customer, amount=amount, currency=currency)

    def credit(self, invoice: str, amount: int | None = None) -> Thing:
        """Write a credit note for an invoice and return it."""
        return self._tell("invoices/credit", invoice=invoice, amount=amount)

    def open_dispute(self, payment_intent: str, *, amount: int | None = None, withdraw: bool = True) -> Thing:
        """Dispute the charge that paid an intent."""
        return self._tell("disputes/open", payment_intent=payment_intent, amount=amount, withdraw=withdraw)

    def withdraw(self, dispute: str) -> Thing:
        """Take the disputed money."""
        return self._tell("disputes/withdraw", dispute=dispute)

    def reinstate(self, dispute: str) -> Thing:
        """Give the disputed money back."""
        return self._tell("disputes/reinstate", dispute=dispute)

    def close_dispute(self, dispute: str, *, won: bool, reinstate: bool = True) -> Thing:
        """Decide a dispute; a won one gives the money back unless told otherwise."""
        return self._tell("disputes/close", dispute=dispute, won=won, reinstate=reinstate)

    def refund(self, payment_intent: str, amount: int | None = None) -> Thing:
        """Refund at the dashboard the charge that paid an intent."""
        return self._tell("refunds/create", payment_intent=payment_intent, amount=amount)

    def fail_refund(self, refund: str) -> Thing:
        """Let a refund fail after all."""
        return self._tell("refunds/fail", refund=refund)

    def after_retries(self, outcome: str) -> None:
        """Set what becomes of a subscription after the last retry: cancel, unpaid or leave."""
        self._tell("settings", after_retries=outcome)
