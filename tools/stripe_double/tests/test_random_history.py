"""Random operations on a customer; afterwards every cent is accounted for."""

import random
from collections.abc import Callable
from typing import Any

import pytest
import stripe

from accounts import DAY, DoubleAccount
from stripe_double.client import ControlClient, ControlError

_CARDS = (
    "pm_card_visa",
    "pm_card_chargeCustomerFail",
    "pm_card_authenticationRequired",
    "pm_card_mastercard",
)


_STEPS = 40


class RandomHistory:
    """Random operations on a customer; operations that Stripe rejects are skipped."""

    def __init__(self, account: DoubleAccount, controls: ControlClient, generator: random.Random) -> None:
        self.account, self.controls, self.random = account, controls, generator
        self.customer = account.create_paying_customer()

    def run(self, steps: int) -> None:
        """Run this many operations."""
        actions: list[Callable[[], Any]] = [
            self.subscribe, self.change_amount, self.change_card, self.cancel, self.pass_days, self.pass_days,
            self.refund, self.dispute, self.credit, self.pay, self.set_balance, self.authenticate, self.create_invoice,
        ]  # fmt: skip
        for _ in range(steps):
            try:
                self.random.choice(actions)()
            except (stripe.InvalidRequestError, stripe.CardError, ControlError, IndexError):
                continue

    def subscribe(self) -> None:
        self.account.subscribe(
            self.customer, self.random.choice((0, 20, 700, 2550)), off_session=self.random.random() < 0.5
        )

    def change_amount(self) -> None:
        subscription = self._any(self.account.v1.subscriptions.list({"customer": self.customer.id}))
        price: Any = {
            "currency": "usd",
            "product": self.account.create_product().id,
            "unit_amount": self.random.randint(0, 9000),
            "recurring": {"interval": "month"},
        }
        behavior = self.random.choice(("none", "create_prorations", "always_invoice"))
        items: Any = [{"id": subscription["items"].data[0].id, "price_data": price}]
        self.account.v1.subscriptions.update(
            subscription.id, {"items": items, "proration_behavior": behavior}
        )

    def change_card(self) -> None:
        card = self.account.v1.payment_methods.attach(
            self.random.choice(_CARDS), {"customer": self.customer.id}
        )
        settings: Any = {"default_payment_method": card.id}
        self.account.v1.customers.update(self.customer.id, {"invoice_settings": settings})

    def cancel(self) -> None:
        subscription = self._any(self.account.v1.subscriptions.list({"customer": self.customer.id}))
        if self.random.random() < 0.3:
            self.account.v1.subscriptions.cancel(subscription.id)
        else:
            self.account.v1.subscriptions.update(
                subscription.id, {"cancel_at_period_end": self.random.random() < 0.5}
            )

    def pass_days(self) -> None:
        self.controls.advance(self.random.randint(1, 40) * DAY)

    def refund(self) -> None:
        charge = self._any(self.account.v1.charges.list({"customer": self.customer.id}))
        refund = self.account.v1.refunds.create(
            {"charge": charge.id, "amount": self.random.randint(1, charge.amount)}
        )
        if self.random.random() < 0.3:
            self.controls.fail_refund(refund.id)

    def dispute(self) -> None:
        charge = self._any(self.account.v1.charges.list({"customer": self.customer.id}))
        dispute = self.controls.open_dispute(charge.payment_intent)
        if self.random.random() < 0.7:
            self.controls.close_dispute(dispute["id"], won=self.random.random() < 0.5)

    def credit(self) -> None:
        invoice = self._any(self.account.v1.invoices.list({"customer": self.customer.id}))
        self.controls.create_credit_note(invoice.id, self.random.choice((None, 1, 50)))

    def pay(self) -> None:
        invoice = self._any(self.account.v1.invoices.list({"customer": self.customer.id, "status": "open"}))
        self.account.v1.invoices.pay(invoice.id, {"paid_out_of_band": self.random.random() < 0.3})

    def set_balance(self) -> None:
        self.account.v1.customers.update(self.customer.id, {"balance": self.random.randint(-3000, 300)})

    def authenticate(self) -> None:
        intent = self._any(self.account.v1.payment_intents.list({"customer": self.customer.id}))
        self.controls.authenticate(intent.id, succeeds=self.random.random() < 0.7)

    def create_invoice(self) -> None:
        self.controls.create_invoice(self.customer.id, self.random.randint(1, 3000))

    def _any(self, listed: Any) -> Any:
        return self.random.choice(listed.data)


@pytest.mark.parametrize("seed", [random.randrange(10**9) for _ in range(2)])
def test_every_cent_is_accounted_for(seed: int, account: DoubleAccount, controls: ControlClient) -> None:
    history = RandomHistory(account, controls, random.Random(seed))
    history.run(_STEPS)
    services, filters = account.v1, {"customer": history.customer.id, "limit": 100}
    charges: dict[str, Any] = {item.id: item for item in services.charges.list(filters).auto_paging_iter()}  # type: ignore[arg-type]
    for invoice in services.invoices.list(filters).auto_paging_iter():  # type: ignore[arg-type]
        payments = services.invoice_payments.list({"invoice": str(invoice.id)}).data
        collected = sum(payment.amount_paid or 0 for payment in payments)
        assert invoice.amount_paid == collected + (invoice.amount_paid_off_stripe or 0)
        assert invoice.amount_paid + invoice.amount_remaining == invoice.amount_due
        assert invoice.total == sum(line.amount for line in invoice.lines.data)
        if invoice.ending_balance is not None:
            owed = invoice.total + invoice.starting_balance - invoice.pre_payment_credit_notes_amount
            assert owed - invoice.ending_balance == invoice.amount_due
        for payment in payments:
            intent = services.payment_intents.retrieve(str(payment.payment.payment_intent))
            paid = [
                item
                for item in charges.values()
                if item.payment_intent == intent.id and item.status == "succeeded"
            ]
            assert [item.amount for item in paid] == [collected] * (intent.status == "succeeded")
    for charge in charges.values():
        refunds = services.refunds.list({"charge": charge.id, "limit": 100}).data
        assert (
            charge.amount_refunded
            == sum(item.amount for item in refunds if item.status != "failed")
            <= charge.amount
        )
    _periods_follow_each_other(account, history.customer)


def _periods_follow_each_other(account: DoubleAccount, customer: stripe.Customer) -> None:
    for subscription in account.v1.subscriptions.list({"customer": customer.id, "status": "all"}).data:
        cycles = [
            item for item in account.invoices(subscription) if item.billing_reason != "subscription_update"
        ]
        periods = [(item.lines.data[-1].period.start, item.lines.data[-1].period.end) for item in cycles]
        assert [end for _, end in periods[:-1]] == [start for start, _ in periods[1:]]
