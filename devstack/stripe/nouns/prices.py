"""Prices: licensed, per unit, one time or recurring."""

from typing import Any

from devstack.stripe.billing.pricing import make_price
from devstack.stripe.state.account import Account
from devstack.stripe.state.things import Thing
from devstack.stripe.wire.finding import find, merge_metadata
from devstack.stripe.wire.lists import page
from devstack.stripe.wire.parameters import METADATA, PAGE, takes
from devstack.stripe.wire.routes import Route
from devstack.stripe.wire.shapes import Choice, Flag, Hash, Integer, Shape, Text

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


def create(account: Account, params: dict[str, Any]) -> Thing:
    """Create a price."""
    return make_price(account, params, active=params.get("active", True), place="")


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
