"""The lines of an invoice."""

from fractions import Fraction

from stripe_double.account import Account
from stripe_double.store import Resource, new_id

Period = tuple[int, int]


def period_of(item: Resource) -> Period:
    """Return the current period of a subscription item."""
    return item["current_period_start"], item["current_period_end"]


def period_lines(account: Account, subscription: Resource) -> list[Resource]:
    """Return the lines that bill every item of a subscription for its current period."""
    return [_period_line(account, subscription, item) for item in subscription["items"]["data"]]


def proration_lines(now: int, subscription: Resource, before: list[Resource]) -> list[Resource]:
    """Return proration lines: a credit at the old price and a charge at the new one for the rest of the period."""
    old = {item["id"]: item for item in before}
    new = {item["id"]: item for item in subscription["items"]["data"]}
    changed = [
        identifier
        for identifier in {**old, **new}
        if _price_and_quantity(old.get(identifier)) != _price_and_quantity(new.get(identifier))
    ]
    credited = [_proration_line(now, subscription, old[item], -1) for item in changed if item in old]
    charged = [_proration_line(now, subscription, new[item], 1) for item in changed if item in new]
    return credited + charged


def invoice_item_line(
    account: Account, amount: int, currency: str, *, product: str | None = None
) -> Resource:
    """Return the line of an item outside of subscriptions, of an amount alone or of a product."""
    parent = {"invoice_item": new_id("ii"), "proration": False, "proration_details": {"credited_items": None}}
    pricing = {
        "price_details": {"price": new_id("price"), "product": product},
        "type": "price_details",
        "unit_amount_decimal": str(amount),
    }
    return {
        **_new_line(amount, currency, "Invoice item", (account.now, account.now)),
        "pricing": pricing if product else None,
        "parent": {
            "invoice_item_details": {**parent, "subscription": None},
            "subscription_item_details": None,
            "type": "invoice_item_details",
        },
    }


def _price_and_quantity(item: Resource | None) -> tuple[str, int] | None:
    return (item["price"]["id"], item["quantity"]) if item else None


def _period_line(account: Account, subscription: Resource, item: Resource) -> Resource:
    price = item["price"]
    product = account.store.get("product", price["product"]) or {"name": price["product"]}
    money = f"{price['unit_amount'] / 100:.2f} {price['currency'].upper()}"
    text = f"{item['quantity']} × {product['name']} (at {money} / {price['recurring']['interval']})"
    amount = price["unit_amount"] * item["quantity"]
    return _subscription_line(subscription, item, period_of(item), amount, text, proration=False)


def _proration_line(now: int, subscription: Resource, item: Resource, sign: int) -> Resource:
    start, end = period_of(item)
    amount = round(item["price"]["unit_amount"] * item["quantity"] * Fraction(end - now, end - start))
    text = "Unused time" if sign < 0 else "Remaining time"
    return _subscription_line(subscription, item, (now, end), sign * amount, text, proration=True)


def _subscription_line(
    subscription: Resource, item: Resource, period: Period, amount: int, text: str, *, proration: bool
) -> Resource:
    price = item["price"]
    parent = {
        "invoice_item": None,
        "proration": proration,
        "proration_details": {"credited_items": None},
        "subscription": subscription["id"],
        "subscription_item": item["id"],
    }
    return {
        **_new_line(amount, price["currency"], text, period),
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
        "quantity_decimal": str(item["quantity"]),
        "subscription": subscription["id"],
    }


def _new_line(amount: int, currency: str, text: str, period: Period) -> Resource:
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
        "quantity_decimal": "1",
        "subscription": None,
        "subtotal": amount,
        "taxes": [],
    }
