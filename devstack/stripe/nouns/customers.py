"""Customers."""

from typing import Any

from devstack.stripe.billing.ending import cancel_now, leave_uncollected
from devstack.stripe.billing.wallet import attach_card, card_named
from devstack.stripe.state.account import Account
from devstack.stripe.state.things import Thing, new_id
from devstack.stripe.wire.finding import find, merge_metadata, owned_card
from devstack.stripe.wire.lists import page
from devstack.stripe.wire.parameters import METADATA, PAGE, takes
from devstack.stripe.wire.refusals import NotFound
from devstack.stripe.wire.routes import Route
from devstack.stripe.wire.shapes import Choice, Hash, Integer, Several, Shape, Text

_PATH = "/v1/customers"
_ADDRESS = Hash(
    {name: Text(clearable=True) for name in ("city", "country", "line1", "line2", "postal_code", "state")}
)
_INVOICE_SETTINGS = Hash({"default_payment_method": Text(clearable=True), "footer": Text(clearable=True)})
_FIELDS: dict[str, Shape] = {
    "address": _ADDRESS,
    "balance": Integer(),
    "description": Text(clearable=True),
    "email": Text(512, clearable=True),
    "invoice_settings": _INVOICE_SETTINGS,
    "metadata": METADATA,
    "name": Text(256, clearable=True),
    "phone": Text(20, clearable=True),
    "preferred_locales": Several(Text()),
    "tax_exempt": Choice(("none", "exempt", "reverse")),
}


def create(account: Account, params: dict[str, Any]) -> Thing:
    """Create a customer, with a card if one is named."""
    customer = account.add(_blank(account.now))
    _apply(account, customer, params)
    account.tell("customer.created", customer)
    if "payment_method" in params:
        attach_card(account, card_named(account, params["payment_method"]), customer["id"])
    return customer


def retrieve(account: Account, _params: dict[str, Any], identifier: str) -> Thing:
    """Return a customer, or what is left of a deleted one."""
    return find(account, "customer", identifier)


def update(account: Account, params: dict[str, Any], identifier: str) -> Thing:
    """Change a customer."""
    customer = _alive(account, identifier)
    with account.telling("customer.updated", customer):
        _apply(account, customer, params)
    return customer


def list_all(account: Account, params: dict[str, Any]) -> Thing:
    """Return a page of customers."""
    alive = [item for item in account.store.all("customer") if not item.get("deleted")]
    if "email" in params:
        alive = [item for item in alive if item["email"] == params["email"]]
    return page(alive, params, _PATH)


def delete(account: Account, _params: dict[str, Any], identifier: str) -> Thing:
    """Delete a customer for good; its subscriptions end at once."""
    customer = _alive(account, identifier)
    for subscription in account.store.all("subscription"):
        if subscription["customer"] == identifier:
            cancel_now(account, subscription["id"], reason="cancellation_requested")
    for invoice in account.store.all("invoice"):
        if invoice["customer"] == identifier and invoice["status"] in ("draft", "open"):
            leave_uncollected(account, account.store.get("invoice", invoice["id"]) or invoice)
    account.tell("customer.deleted", customer)
    gone = {"object": "customer", "id": identifier, "deleted": True}
    customer.clear()
    customer.update(gone)
    return {"object": "customer", "id": identifier, "deleted": True}


def _alive(account: Account, identifier: str) -> Thing:
    customer = find(account, "customer", identifier)
    if customer.get("deleted"):
        raise NotFound("customer", identifier)
    return customer


def _blank(now: int) -> Thing:
    nothing = dict.fromkeys(
        ("address", "description", "email", "name", "phone", "shipping", "default_source", "currency")
    )
    settings = dict.fromkeys(("custom_fields", "default_payment_method", "footer", "rendering_options"))
    return {
        "object": "customer",
        "id": new_id("cus", 14),
        "created": now,
        "livemode": False,
        **nothing,
        "balance": 0,
        "delinquent": False,
        "discount": None,
        "invoice_prefix": new_id("x", 8)[2:].upper(),
        "invoice_settings": settings,
        "metadata": {},
        "next_invoice_sequence": 1,
        "preferred_locales": [],
        "tax_exempt": "none",
        "test_clock": None,
    }


def _apply(account: Account, customer: Thing, params: dict[str, Any]) -> None:
    for name in _FIELDS.keys() - {"metadata", "invoice_settings"}:
        if name in params:
            customer[name] = params[name]
    if "metadata" in params:
        merge_metadata(customer, params["metadata"])
    settings = params.get("invoice_settings", {})
    if settings.get("default_payment_method") is not None:
        place = "invoice_settings[default_payment_method]"
        owned_card(account, settings["default_payment_method"], customer["id"], place)
    customer["invoice_settings"] |= settings


ROUTES = (
    Route("POST", _PATH, create, takes(**_FIELDS, payment_method=Text())),
    Route("GET", _PATH, list_all, takes(**PAGE, email=Text())),
    Route("GET", f"{_PATH}/{{id}}", retrieve, takes()),
    Route("POST", f"{_PATH}/{{id}}", update, takes(**_FIELDS)),
    Route("DELETE", f"{_PATH}/{{id}}", delete, takes()),
)
