"""Prices, made from an amount and a product."""

from decimal import Decimal, InvalidOperation
from typing import Any

from devstack.stripe.billing.money import chargeable, known_currency
from devstack.stripe.state.account import Account
from devstack.stripe.state.things import Thing, new_id
from devstack.stripe.wire.finding import named
from devstack.stripe.wire.refusals import Invalid


def make_price(account: Account, data: dict[str, Any], *, active: bool, place: str) -> Thing:
    """Create a price from `price_data` or the like."""
    product = named(account, "product", data["product"], f"{place}[product]" if place else "product")
    amount_place = f"{place}[unit_amount]" if place else "unit_amount"
    recurring = data.get("recurring")
    amount = chargeable(_unit_amount(data, amount_place), amount_place)
    price: Thing = {
        "object": "price",
        "id": new_id("price"),
        "active": active,
        "billing_scheme": "per_unit",
        "created": account.now,
        "currency": known_currency(data["currency"], f"{place}[currency]" if place else "currency"),
        "custom_unit_amount": None,
        "livemode": False,
        "lookup_key": data.get("lookup_key"),
        "metadata": data.get("metadata") or {},
        "nickname": data.get("nickname"),
        "product": product["id"],
        "recurring": recurring
        and {"interval_count": 1, "meter": None, "usage_type": "licensed", **recurring},
        "tax_behavior": data.get("tax_behavior", "unspecified"),
        "tiers_mode": None,
        "transform_quantity": None,
        "type": "recurring" if recurring else "one_time",
        "unit_amount": amount,
        "unit_amount_decimal": str(amount),
    }
    account.tell("price.created", account.add(price))
    return price


def _unit_amount(data: dict[str, Any], place: str) -> int:
    if "unit_amount" in data:
        return int(data["unit_amount"])
    if "unit_amount_decimal" not in data:
        raise Invalid(f"Missing required param: {place}.", code="parameter_missing", param=place)
    try:
        amount = Decimal(data["unit_amount_decimal"])
    except InvalidOperation:
        amount = Decimal(-1)
    if amount < 0 or amount != int(amount):
        raise Invalid(
            "Invalid decimal: this account has whole minor units only.", param=f"{place[:-1]}_decimal]"
        )
    return int(amount)
