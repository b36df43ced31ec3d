"""Prices (licensed, per unit, one-time or recurring) and their currencies."""

from typing import Any

from stripe_double.account import Account, find, find_param
from stripe_double.errors import InvalidRequest
from stripe_double.events import emit, emit_changes
from stripe_double.parameters import Boolean, Enum, Hash, Integer, Metadata, Parameter, String, takes
from stripe_double.routing import Route, list_route, retrieve_route
from stripe_double.store import Resource, apply_fields, new_id

_MAX_AMOUNT = 99_999_999
MINIMUM_CHARGES = {
    "usd": 50, "aed": 200, "aud": 50, "brl": 50, "cad": 50, "chf": 50, "czk": 1500, "dkk": 250, "eur": 50,
    "gbp": 30, "hkd": 400, "huf": 17500, "inr": 50, "jpy": 50, "mxn": 1000, "myr": 200, "nok": 300, "nzd": 50,
    "pln": 200, "ron": 200, "sek": 300, "sgd": 50, "thb": 1000,
}  # fmt: skip
_RECURRING = Hash(
    {"interval": Enum(("day", "week", "month", "year")), "interval_count": Integer(minimum=1, maximum=1095)},
    required=("interval",),
)
_AMOUNT: dict[str, Parameter] = {
    "currency": String(3),
    "product": String(),
    "tax_behavior": Enum(("exclusive", "inclusive", "unspecified")),
    "unit_amount": Integer(minimum=0),
}
_PATH = "/v1/prices"
_FIELDS: dict[str, Parameter] = {
    "active": Boolean(),
    "metadata": Metadata(),
    "nickname": String(can_unset=True),
}
PRICE_DATA = Hash({**_AMOUNT, "recurring": _RECURRING}, required=("currency", "product", "recurring"))


def create_price(account: Account, data: dict[str, Any], *, active: bool, param: str = "") -> Resource:
    """Create a price from the parameters under `param`, such as `items[0][price_data]`."""

    def name(field: str) -> str:
        return f"{param}[{field}]" if param else field

    product = find_param(account, "product", data["product"], name("product"))
    if not product["active"]:
        message = f"The product {product['id']} is marked as inactive, and thus no new subscriptions can be created."
        raise InvalidRequest(message, param=name("product"))
    amount = _unit_amount(data, name("unit_amount"))
    recurring = data.get("recurring")
    price: Resource = {
        "object": "price",
        "id": new_id("price"),
        "active": active,
        "billing_scheme": "per_unit",
        "created": account.now,
        "currency": parse_currency(data["currency"], name("currency")),
        "custom_unit_amount": None,
        "livemode": False,
        "lookup_key": None,
        "metadata": {},
        "nickname": None,
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
    emit(account, "price.created", account.add(price))
    return price


def update(account: Account, params: dict[str, Any], identifier: str) -> Resource:
    """Change a price; `active` false archives it, and existing subscriptions keep it."""
    price = find(account, "price", identifier)
    with emit_changes(account, "price.updated", price):
        apply_fields(price, params, _FIELDS)
    return price


def parse_currency(code: str, param: str) -> str:
    """Return the currency in lower case; reject an unsupported one."""
    currency = code.lower()
    if currency not in MINIMUM_CHARGES:
        supported = ", ".join(MINIMUM_CHARGES)
        message = f"Invalid currency: {code}. Stripe currently supports these currencies: {supported}"
        raise InvalidRequest(message, param=param)
    return currency


def _unit_amount(data: dict[str, Any], param: str) -> int:
    if "unit_amount" not in data:
        message = f"Missing required param: {param}."
        raise InvalidRequest(message, code="parameter_missing", param=param)
    amount = int(data["unit_amount"])
    if amount > _MAX_AMOUNT:
        message = "Amount must be no more than $999,999.99"
        raise InvalidRequest(message, code="amount_too_large", param=param)
    return amount


ROUTES = (
    list_route(_PATH, "price", active=Boolean(), product=String()),
    retrieve_route(_PATH, "price"),
    Route("POST", f"{_PATH}/{{id}}", update, takes(**_FIELDS)),
)
