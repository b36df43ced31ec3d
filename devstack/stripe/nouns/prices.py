"""Prices: licensed, per unit, one time or recurring."""

from decimal import Decimal, InvalidOperation
from typing import Any

from devstack.stripe.billing.money import chargeable, known_currency
from devstack.stripe.nouns.finding import find, merge_metadata, named
from devstack.stripe.state.account import Account
from devstack.stripe.state.things import Thing, new_id
from devstack.stripe.wire.lists import page
from devstack.stripe.wire.refusals import Invalid
from devstack.stripe.wire.routes import Route
from devstack.stripe.wire.shapes import METADATA, PAGE, Choice, Flag, Hash, Integer, Shape, Text, takes

_PATH = "/v1/prices"
RECURRING = Hash(
    {"interval": Choice(("day", "week", "month", "year")), "interval_count": Integer(least=1, most=1095)},
    required=("interval",),
)
AMOUNT: dict[str, Shape] = {
    "currency": Text(3),
    "product": Text(),
    "tax_behavior": Choice(("exclusive", "inclusive", "unspecified")),
    "unit_amount": Integer(least=0),
    "unit_amount_decimal": Text(),
}
PRICE_DATA = Hash({**AMOUNT, "recurring": RECURRING}, required=("currency", "product", "recurring"))


def make(account: Account, data: dict[str, Any], *, active: bool, place: str) -> Thing:
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
        "recurring": recurring and {"interval_count": 1, "meter": None, "usage_type": "licensed", **recurring},
        "tax_behavior": data.get("tax_behavior", "unspecified"),
        "tiers_mode": None,
        "transform_quantity": None,
        "type": "recurring" if recurring else "one_time",
        "unit_amount": amount,
        "unit_amount_decimal": str(amount),
    }
    account.tell("price.created", account.add(price))
    return price


def create(account: Account, params: dict[str, Any]) -> Thing:
    """Create a price."""
    return make(account, params, active=params.get("active", True), place="")


def retrieve(account: Account, _params: dict[str, Any], identifier: str) -> Thing:
    """Return a price."""
    return find(account, "price", identifier)


def update(account: Account, params: dict[str, Any], identifier: str) -> Thing:
    """Change what may be changed of a price: never its amount."""
    price = find(account, "price", identifier)
    with account.telling("price.updated", price):
        for name in ("active", "nickname", "lookup_key"):
            if name in params:
                price[name] = params[name]
        if "metadata" in params:
            merge_metadata(price, params["metadata"])
    return price


def list_all(account: Account, params: dict[str, Any]) -> Thing:
    """Return a page of prices."""
    found = account.store.all("price")
    for name in ("active", "currency", "product", "type"):
        if name in params:
            found = [item for item in found if item[name] == params[name]]
    return page(found, params, _PATH)


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
        raise Invalid("Invalid decimal: this account has whole minor units only.", param=f"{place[:-1]}_decimal]")
    return int(amount)


_CHANGEABLE: dict[str, Shape] = {
    "active": Flag(),
    "lookup_key": Text(200),
    "metadata": METADATA,
    "nickname": Text(clearable=True),
}
_TYPE = Choice(("one_time", "recurring"))
ROUTES = (
    Route("POST", _PATH, create, takes("currency", "product", **AMOUNT, **_CHANGEABLE, recurring=RECURRING)),
    Route("GET", _PATH, list_all, takes(**PAGE, active=Flag(), currency=Text(), product=Text(), type=_TYPE)),
    Route("GET", f"{_PATH}/{{id}}", retrieve, takes()),
    Route("POST", f"{_PATH}/{{id}}", update, takes(**_CHANGEABLE)),
)
