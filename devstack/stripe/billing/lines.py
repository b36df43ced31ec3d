"""The lines of an invoice."""

from devstack.stripe.state.account import Account
from devstack.stripe.state.things import Thing, new_id

Period = tuple[int, int]


def item_amount(item: Thing) -> int:
    """Return what a subscription item costs per period."""
    return int(item["price"]["unit_amount"] * item["quantity"])


def service_line(account: Account, subscription: Thing, item: Thing, period: Period) -> Thing:
    """Return the line that bills one item for one period."""
    price = item["price"]
    product = account.store.get("product", price["product"]) or {"name": price["product"]}
    money = f"{price['unit_amount'] / 100:.2f} {price['currency'].upper()}"
    text = f"{item['quantity']} × {product['name']} (at {money} / {price['recurring']['interval']})"
    return _line(subscription, item, period, item_amount(item), text, proration=False)


def proration_line(subscription: Thing, item: Thing, period: Period, amount: int) -> Thing:
    """Return the line that charges or credits one item for the rest of a period."""
    text = "Unused time" if amount < 0 else "Remaining time"
    return _line(subscription, item, period, amount, text, proration=True)


def manual_line(account: Account, amount: int, currency: str) -> Thing:
    """Return the line of something that was sold beside all subscriptions."""
    parent = {"invoice_item": new_id("ii"), "proration": False, "proration_details": {"credited_items": None}}
    return {
        **_blank(amount, currency, "Something else", (account.now, account.now)),
        "parent": {
            "invoice_item_details": {**parent, "subscription": None},
            "subscription_item_details": None,
            "type": "invoice_item_details",
        },
    }


def _line(
    subscription: Thing, item: Thing, period: Period, amount: int, text: str, *, proration: bool
) -> Thing:
    price = item["price"]
    parent = {
        "invoice_item": None,
        "proration": proration,
        "proration_details": {"credited_items": None},
        "subscription": subscription["id"],
        "subscription_item": item["id"],
    }
    return {
        **_blank(amount, price["currency"], text, period),
        "discountable": not proration,
        "metadata": dict(subscription["metadata"]),
        "parent": {
            "invoice_item_details": None,
            "subscription_item_details": parent,
            "type": "subscription_item_details",
        },
        "pricing": {
            "price_details": {"price": price["id"], "product": price["product"]},
            "type": "price_details",
            "unit_amount_decimal": price["unit_amount_decimal"],
        },
        "quantity": item["quantity"],
    }


def _blank(amount: int, currency: str, text: str, period: Period) -> Thing:
    return {
        "object": "line_item",
        "id": new_id("il"),
        "amount": amount,
        "currency": currency,
        "description": text,
        "discount_amounts": [],
        "discountable": True,
        "discounts": [],
        "invoice": None,
        "livemode": False,
        "metadata": {},
        "period": {"start": period[0], "end": period[1]},
        "pretax_credit_amounts": [],
        "pricing": None,
        "quantity": 1,
        "subtotal": amount,
        "taxes": [],
    }
