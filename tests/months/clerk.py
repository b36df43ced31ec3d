"""What a clerk and banks do at random, on any subscription, invoice or payment of a person."""

import random
from collections.abc import Callable
from functools import cached_property
from typing import Any

from django.conf import settings

from payments.models import FurtherPayment, Payout
from tests.payments import dashboard_actions
from tests.payments.dashboard_actions import HATS, Scene

_PART = 100


class AnyScene(Scene):
    """A payer at any time: each action is about one subscription and one payment, chosen at random."""

    @cached_property
    def subscription(self) -> str:
        """A live subscription of the customer, ours or another product's, else the newest that has ended."""
        rows = self.v1.subscriptions.list({"customer": self.customer, "limit": 100}).data
        return str(random.choice(rows).id if rows else self.payer.subscription.stripe_subscription_id)

    @cached_property
    def customer(self) -> str:
        return self.payer.customer.stripe_customer_id

    @cached_property
    def item(self) -> str:
        return str(random.choice(self.clerk.items(self.subscription)).id)

    @cached_property
    def payment(self) -> str:
        """A payment of one of the last payouts, of a month or of a purchase."""
        rows = Payout.objects.filter(user=self.payer.user).order_by("-pk")
        payout = random.choice(list(rows[:4]))
        further = FurtherPayment.objects.filter(payout=payout)
        return random.choice(
            [payout.stripe_payment_intent_id, *(row.stripe_payment_intent_id for row in further)]
        )

    @property
    def open_invoice(self) -> str:
        query = {"customer": self.customer, "status": "open", "limit": 10}
        return str(random.choice(self.v1.invoices.list(query).data).id)

    def some_dispute(self) -> str:
        return str(random.choice(self.v1.disputes.list({"payment_intent": self.payment}).data).id)

    def decline(self, code: str | None) -> None:
        for card in self.v1.payment_methods.list({"customer": self.customer}).data:
            self.double.decline_from_now(card.id, code)

    def pay_in_parts(self) -> None:
        """Let an open invoice be paid by two payments."""
        invoice = self.open_invoice
        self.decline(None)
        self.double.controls.pay_invoice_part(invoice, _PART)
        self.v1.invoices.pay(invoice)


def _both_products(one: AnyScene) -> None:
    ours = one.price(random.randint(500, 4_000))
    hats = {**one.price(random.randint(500, 4_000), HATS), "quantity": random.randint(1, 3)}
    one.clerk.subscribe_to(one.payer, *random.sample([ours, hats], 2))


def _release(one: AnyScene) -> None:
    rows = one.v1.subscriptions.list({"customer": one.customer, "limit": 100}).data
    one.v1.subscription_schedules.release(random.choice([row.schedule for row in rows if row.schedule]))


_NOW, _LATER, _NONE = ({"proration_behavior": how} for how in ("always_invoice", "create_prorations", "none"))
_MORE: dict[str, Callable[[AnyScene], object]] = {
    "an open invoice voided": lambda one: one.v1.invoices.void_invoice(one.open_invoice),
    "an open invoice paid outside of Stripe": lambda one: one.double.pay_out_of_band(one.open_invoice),
    "an open invoice paid in two parts": lambda one: one.pay_in_parts(),
    "a part of an open invoice paid": lambda one: one.double.controls.pay_invoice_part(
        one.open_invoice, _PART
    ),
    "the anchor moved to now": lambda one: one.change(billing_cycle_anchor={"type": "now"}, **_NONE),
    "the anchor moved to now, prorated": lambda one: one.change(
        billing_cycle_anchor={"type": "now"}, **_LATER
    ),
    "the schedule released": _release,
    "collection resumed": lambda one: one.change(pause_collection=""),
    "collection paused until a date": lambda one: one.change(
        pause_collection={"behavior": "void", "resumes_at": one.in_days(random.randint(5, 40))}
    ),
    "no longer cancelled": lambda one: one.change(cancel_at_period_end=False),
    "the discounts removed": lambda one: one.change(discounts=""),
    "a subscription to both products": _both_products,
    "quantity 0": lambda one: one.change({"id": one.item, "quantity": 0}, **_LATER),
    "an item removed, difference on the next invoice": lambda one: one.change(
        {"id": one.item, "deleted": True}, **_LATER
    ),
    "an item removed, difference credited now": lambda one: one.change(
        {"id": one.item, "deleted": True}, **_NOW
    ),
    "a subscription cancelled": lambda one: one.v1.subscriptions.cancel(one.subscription),
    "a line of our product on another invoice": lambda one: one.clerk.add_line(
        one.payer,
        random.randint(100, 3_000),
        subscription=one.subscription,
        product=settings.STRIPE_PRODUCT_ID,
    ),
    "another rebate": lambda one: one.clerk.add_line(one.payer, -random.randint(100, 4_000)),
    "a part disputed": lambda one: one.double.dispute(one.payment, random.randint(1, 400)),
    "a dispute without withdrawal": lambda one: one.double.dispute(one.payment, withdraw=False),
    "a dispute withdrawn later": lambda one: one.double.withdraw(one.some_dispute()),
    "a dispute reinstated in part": lambda one: one.double.controls.reinstate_funds(one.some_dispute(), 1),
    "a dispute won": lambda one: one.double.controls.close_dispute(one.some_dispute(), won=True),
    "a dispute lost": lambda one: one.double.controls.close_dispute(one.some_dispute(), won=False),
    "another refund": lambda one: one.double.refund(one.payment, random.randint(1, 1_500)),
    "a trial": lambda one: one.double.controls.set_status(one.subscription, "trialing"),
    "paused": lambda one: one.double.controls.set_status(one.subscription, "paused"),
    "the card is declined": lambda one: one.decline("insufficient_funds"),
    "the card is accepted": lambda one: one.decline(None),
}
CLERK: dict[str, Callable[[Any], object]] = {**dashboard_actions.ACTIONS, **_MORE}
# What happens more often than the rest.
OFTEN = (
    "a refund of a part", "a refund of everything", "a dispute", "a dispute won", "a dispute lost", "another refund",
    "the card is declined", "the card is declined", "the card is declined", "an open invoice paid in two parts",
    "a part of an open invoice paid", "an open invoice voided", "a second subscription to our product",
)  # fmt: skip
RARE = ("the customer deleted", "paused", "our item replaced by another product")
