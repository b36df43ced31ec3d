"""What a clerk can do at Stripe's dashboard, each action on the subscription of one payer."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.conf import settings

from tests.payments.dashboard import Clerk
from tests.payments.payers import Payer
from tests.payments.stripe_accounts import DoubleAccount

HATS, COST, DAY = "hats", 2_550, 86_400


@dataclass
class Scene:
    """A payer in the middle of a paid month, and the clerk."""

    payer: Payer
    clerk: Clerk

    @property
    def double(self) -> DoubleAccount:
        return self.clerk.double

    @property
    def v1(self) -> Any:
        return self.double.v1

    @property
    def subscription(self) -> str:
        return self.payer.payouts[0].subscription.stripe_subscription_id

    @property
    def customer(self) -> str:
        return self.payer.payouts[0].subscription.customer.stripe_customer_id

    @property
    def payment(self) -> str:
        return self.payer.payouts[0].stripe_payment_intent_id

    @property
    def item(self) -> str:
        """The item that the service made."""
        return self.payer.payouts[0].subscription.stripe_item_id

    def change(self, *items: dict[str, Any], **parameters: Any) -> None:
        self.clerk.change(self.subscription, *items, **parameters)

    def price(self, amount: int, product: str = "") -> dict[str, Any]:
        return {"price_data": self.clerk.price(amount, product=product)}

    def coupon(self, percent: int, duration: str = "forever") -> dict[str, Any]:
        return {"discounts": [{"coupon": self.clerk.coupon(percent, duration=duration)}]}

    def dispute(self) -> str:
        return self.double.dispute(self.payment)

    def reinstate(self, *amounts: int) -> None:
        dispute = self.dispute()
        for amount in amounts:
            self.double.controls.reinstate_funds(dispute, amount)

    def invoice(self, amount: int, product: str | None = None) -> None:
        self.double.controls.create_invoice(self.customer, amount, product=product)

    def add_lines(self, count: int, amount: int) -> None:
        for _ in range(count):
            self.clerk.add_line(self.payer, amount)

    def pause(self, behavior: str) -> None:
        self.change(pause_collection={"behavior": behavior})

    def balance(self, amount: int) -> None:
        self.v1.customers.update(self.customer, {"balance": amount})

    def in_days(self, days: int) -> int:
        return int(self.double.now().timestamp()) + days * DAY

    def card(self) -> str:
        return str(self.v1.payment_methods.list({"customer": self.customer}).data[0].id)

    def credit(self, amount: int) -> None:
        invoice = self.payer.payouts[0].stripe_invoice_id
        self.double.controls.create_credit_note(invoice, amount)


_NOW, _LATER, _NONE = ({"proration_behavior": how} for how in ("always_invoice", "create_prorations", "none"))
ACTIONS: dict[str, Callable[[Scene], object]] = {
    "nothing": lambda one: None,
    "quantity 3, from the next month": lambda one: one.change({"id": one.item, "quantity": 3}, **_NONE),
    "quantity 3, difference on the next invoice": lambda one: one.change(
        {"id": one.item, "quantity": 3}, **_LATER
    ),
    "quantity 3, difference collected now": lambda one: one.change({"id": one.item, "quantity": 3}, **_NOW),
    "a higher price, from the next month": lambda one: one.change(
        {"id": one.item, **one.price(3_550)}, **_NONE
    ),
    "a higher price, difference collected now": lambda one: one.change(
        {"id": one.item, **one.price(3_550)}, **_NOW
    ),
    "a lower price, difference on the next invoice": lambda one: one.change(
        {"id": one.item, **one.price(1_550)}, **_LATER
    ),
    "a lower price, difference credited now": lambda one: one.change(
        {"id": one.item, **one.price(1_550)}, **_NOW
    ),
    "a second item of our product": lambda one: one.change(one.price(3_000), **_NONE),
    "a second item, collected now": lambda one: one.change(one.price(3_000), **_NOW),
    "an item of another product": lambda one: one.change(one.price(3_000, HATS), **_NONE),
    "our item replaced by another product": lambda one: one.change(
        {"id": one.item, "deleted": True}, one.price(3_000, HATS), **_NONE
    ),
    "a free price of our product": lambda one: one.change({"id": one.item, **one.price(0)}, **_NONE),
    "a second subscription to our product": lambda one: one.clerk.subscribe(one.payer, COST),
    "a third one of quantity 2": lambda one: one.clerk.subscribe(one.payer, 700, quantity=2),
    "a subscription to another product": lambda one: one.clerk.subscribe(one.payer, 3_000, product=HATS),
    "a line of 9.00 on the next invoice": lambda one: one.clerk.add_line(one.payer, 900),
    "a line of our product on the next invoice": lambda one: one.clerk.add_line(
        one.payer, 900, product=settings.STRIPE_PRODUCT_ID
    ),
    "twelve lines on the next invoice": lambda one: one.add_lines(12, 100),
    "a rebate of 5.00 on the next invoice": lambda one: one.clerk.add_line(one.payer, -500),
    "an invoice of 9.00, collected now": lambda one: one.invoice(900),
    "an invoice for our product, collected now": lambda one: one.invoice(900, settings.STRIPE_PRODUCT_ID),
    "a coupon of 20 % for ever": lambda one: one.change(**one.coupon(20)),
    "a coupon of 100 % for a month": lambda one: one.change(**one.coupon(100, "once")),
    "a balance of 10.00": lambda one: one.balance(-1_000),
    "a balance of 100.00": lambda one: one.balance(-10_000),
    "a debt of 3.00": lambda one: one.balance(300),
    "a refund of a part": lambda one: one.double.refund(one.payment, 1_000),
    "a refund of everything": lambda one: one.double.refund(one.payment),
    "a refund that fails later": lambda one: one.double.fail_refund(one.double.refund(one.payment)),
    "a credit note of 10.00 to the balance": lambda one: one.credit(1_000),
    "a dispute": lambda one: one.dispute(),
    "a dispute, reinstated by half": lambda one: one.reinstate(COST // 2),
    "a dispute, reinstated": lambda one: one.reinstate(COST),
    "a dispute that is lost": lambda one: one.double.controls.close_dispute(one.dispute(), won=False),
    "a warning of fraud": lambda one: one.double.controls.warn_of_fraud(one.payment),
    "collection paused, invoices voided": lambda one: one.pause("void"),
    "collection paused, invoices written off": lambda one: one.pause("mark_uncollectible"),
    "collection paused, drafts kept": lambda one: one.pause("keep_as_draft"),
    "cancelled with the month": lambda one: one.change(cancel_at_period_end=True),
    "cancelled for a date in the next month": lambda one: one.change(cancel_at=one.in_days(50)),
    "cancelled at once": lambda one: one.v1.subscriptions.cancel(one.subscription),
    "a schedule": lambda one: one.v1.subscription_schedules.create({"from_subscription": one.subscription}),
    "the card detached": lambda one: one.v1.payment_methods.detach(one.card()),
    "the customer deleted": lambda one: one.double.delete_customer(one.customer),
}
