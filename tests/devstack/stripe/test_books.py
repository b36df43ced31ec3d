"""The double's books: after whatever happened to a customer, every cent is accounted for."""

import random
import secrets
from collections.abc import Callable
from typing import Any

import pytest
import stripe

from devstack.stripe.client import ControlClient, ControlError
from tests.devstack.stripe.worlds import DAY, DoubleWorld

_CARDS = (
    "pm_card_visa",
    "pm_card_chargeCustomerFail",
    "pm_card_authenticationRequired",
    "pm_card_mastercard",
)
_STEPS = 40


class Walk:
    """A customer to whom things happen at random; what Stripe refuses does not happen."""

    def __init__(self, here: DoubleWorld, controls: ControlClient, chance: random.Random) -> None:
        self.here, self.controls, self.chance = here, controls, chance
        self.customer = here.new_payer()

    def take(self, steps: int) -> None:
        """Let this many things happen."""
        acts: list[Callable[[], Any]] = [
            self.subscribe, self.change_amount, self.change_card, self.end, self.pass_days, self.pass_days,
            self.refund, self.dispute, self.credit, self.pay, self.set_balance, self.authenticate, self.bill,
        ]  # fmt: skip
        for _ in range(steps):
            try:
                self.chance.choice(acts)()
            except (stripe.InvalidRequestError, stripe.CardError, ControlError, IndexError):
                continue

    def subscribe(self) -> None:
        self.here.subscribe(
            self.customer, self.chance.choice((0, 20, 700, 2550)), off_session=self.chance.random() < 0.5
        )

    def change_amount(self) -> None:
        subscription = self._any(self.here.v1.subscriptions.list({"customer": self.customer.id}))
        price: Any = {
            "currency": "usd",
            "product": self.here.new_product().id,
            "unit_amount": self.chance.randint(0, 9000),
            "recurring": {"interval": "month"},
        }
        behavior = self.chance.choice(("none", "create_prorations", "always_invoice"))
        items: Any = [{"id": subscription["items"].data[0].id, "price_data": price}]
        self.here.v1.subscriptions.update(subscription.id, {"items": items, "proration_behavior": behavior})

    def change_card(self) -> None:
        card = self.here.v1.payment_methods.attach(self.chance.choice(_CARDS), {"customer": self.customer.id})
        settings: Any = {"default_payment_method": card.id}
        self.here.v1.customers.update(self.customer.id, {"invoice_settings": settings})

    def end(self) -> None:
        subscription = self._any(self.here.v1.subscriptions.list({"customer": self.customer.id}))
        if self.chance.random() < 0.3:
            self.here.v1.subscriptions.cancel(subscription.id)
        else:
            self.here.v1.subscriptions.update(
                subscription.id, {"cancel_at_period_end": self.chance.random() < 0.5}
            )

    def pass_days(self) -> None:
        self.controls.advance(self.chance.randint(1, 40) * DAY)

    def refund(self) -> None:
        charge = self._any(self.here.v1.charges.list({"customer": self.customer.id}))
        refund = self.here.v1.refunds.create(
            {"charge": charge.id, "amount": self.chance.randint(1, charge.amount)}
        )
        if self.chance.random() < 0.3:
            self.controls.fail_refund(refund.id)

    def dispute(self) -> None:
        charge = self._any(self.here.v1.charges.list({"customer": self.customer.id}))
        dispute = self.controls.open_dispute(charge.payment_intent)
        if self.chance.random() < 0.7:
            self.controls.close_dispute(dispute["id"], won=self.chance.random() < 0.5)

    def credit(self) -> None:
        invoice = self._any(self.here.v1.invoices.list({"customer": self.customer.id}))
        self.controls.create_credit_note(invoice.id, self.chance.choice((None, 1, 50)))

    def pay(self) -> None:
        invoice = self._any(self.here.v1.invoices.list({"customer": self.customer.id, "status": "open"}))
        self.here.v1.invoices.pay(invoice.id, {"paid_out_of_band": self.chance.random() < 0.3})

    def set_balance(self) -> None:
        self.here.v1.customers.update(self.customer.id, {"balance": self.chance.randint(-3000, 300)})

    def authenticate(self) -> None:
        intent = self._any(self.here.v1.payment_intents.list({"customer": self.customer.id}))
        self.controls.authenticate(intent.id, succeeds=self.chance.random() < 0.7)

    def bill(self) -> None:
        self.controls.create_invoice(self.customer.id, self.chance.randint(1, 3000))

    def _any(self, listed: Any) -> Any:
        return self.chance.choice(listed.data)


@pytest.mark.parametrize("seed", [secrets.randbelow(10**9) for _ in range(4)])
def test_every_cent_is_accounted_for(seed: int, here: DoubleWorld, controls: ControlClient) -> None:
    walk = Walk(here, controls, random.Random(seed))
    walk.take(_STEPS)
    services, mine = here.v1, {"customer": walk.customer.id, "limit": 100}
    charges: dict[str, Any] = {it.id: it for it in services.charges.list(mine).auto_paging_iter()}  # type: ignore[arg-type]
    for invoice in services.invoices.list(mine).auto_paging_iter():  # type: ignore[arg-type]
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
                it for it in charges.values() if it.payment_intent == intent.id and it.status == "succeeded"
            ]
            assert [it.amount for it in paid] == [collected] * (intent.status == "succeeded")
    for charge in charges.values():
        refunds = services.refunds.list({"charge": charge.id, "limit": 100}).data
        assert (
            charge.amount_refunded
            == sum(it.amount for it in refunds if it.status != "failed")
            <= charge.amount
        )
    _periods_follow_each_other(here, walk.customer)


def _periods_follow_each_other(here: DoubleWorld, customer: stripe.Customer) -> None:
    for subscription in here.v1.subscriptions.list({"customer": customer.id, "status": "all"}).data:
        cycles = [it for it in here.invoices(subscription) if it.billing_reason != "subscription_update"]
        periods = [(it.lines.data[-1].period.start, it.lines.data[-1].period.end) for it in cycles]
        assert [end for _, end in periods[:-1]] == [start for start, _ in periods[1:]]
