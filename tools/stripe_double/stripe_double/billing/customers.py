"""Customers."""

from typing import Any

from stripe_double.account import Account, find, find_customer_card, find_param
from stripe_double.billing.collection import cancel_subscription, stop_collecting
from stripe_double.errors import ResourceMissing
from stripe_double.events import emit, emit_changes
from stripe_double.parameters import (
    PAGE,
    Array,
    Enum,
    Hash,
    Integer,
    Metadata,
    Parameter,
    String,
    ValueOrHash,
    takes,
)
from stripe_double.resources.payment_methods import attach_card, find_or_create_card
from stripe_double.routing import Route, paginate, retrieve_route
from stripe_double.store import Resource, apply_fields, new_id

_PATH = "/v1/customers"
_ADDRESS = ("city", "country", "line1", "line2", "postal_code", "state")
_INVOICE_SETTINGS = ("default_payment_method", "footer")
_FIELDS: dict[str, Parameter] = {
    "address": ValueOrHash(String(can_unset=True), Hash({name: String(can_unset=True) for name in _ADDRESS})),
    "balance": Integer(),
    "description": String(can_unset=True),
    "email": String(512, can_unset=True),
    "invoice_settings": Hash({name: String(can_unset=True) for name in _INVOICE_SETTINGS}),
    "metadata": Metadata(),
    "name": String(256, can_unset=True),
    "phone": String(20, can_unset=True),
    "preferred_locales": Array(String()),
    "tax_exempt": Enum(("none", "exempt", "reverse")),
}
_NULL = (
    "address", "currency", "default_source", "description", "discount", "email", "name", "phone", "shipping",
    "test_clock",
)  # fmt: skip


def create(account: Account, params: dict[str, Any]) -> Resource:
    """Create a customer, with a card if one is given."""
    customer = account.add(_new_customer(account.now))
    _apply(account, customer, params)
    if "test_clock" in params:
        customer["test_clock"] = find_param(
            account, "test_helpers.test_clock", params["test_clock"], "test_clock"
        )["id"]
    emit(account, "customer.created", customer)
    if "payment_method" in params:
        attach_card(account, find_or_create_card(account, params["payment_method"]), customer["id"])
    return customer


def update(account: Account, params: dict[str, Any], identifier: str) -> Resource:
    """Change a customer."""
    customer = find_existing(account, identifier)
    with emit_changes(account, "customer.updated", customer):
        _apply(account, customer, params)
    return customer


def list_all(account: Account, params: dict[str, Any]) -> Resource:
    """Return a page of customers, without deleted ones; customers of test clocks only with `test_clock`."""
    customers = [
        customer
        for customer in account.store.all("customer")
        if not customer.get("deleted") and customer["test_clock"] == params.get("test_clock")
    ]
    if "email" in params:
        customers = [customer for customer in customers if customer["email"] == params["email"]]
    return paginate(customers, params, _PATH)


def delete(account: Account, _params: dict[str, Any], identifier: str) -> Resource:
    """Delete a customer permanently; its subscriptions end at once."""
    customer = find_existing(account, identifier)
    for subscription in account.store.all("subscription"):
        if subscription["customer"] == identifier:
            cancel_subscription(account, subscription["id"], reason="cancellation_requested")
    for invoice in account.store.all("invoice"):
        if invoice["customer"] == identifier and invoice["status"] in ("draft", "open"):
            stop_collecting(account, account.store.get("invoice", invoice["id"]) or invoice)
    emit(account, "customer.deleted", customer)
    customer.clear()
    customer.update(object="customer", id=identifier, deleted=True)
    return customer


def find_existing(account: Account, identifier: str) -> Resource:
    """Return a customer that is not deleted."""
    customer = find(account, "customer", identifier)
    if customer.get("deleted"):
        raise ResourceMissing("customer", identifier)
    return customer


def _apply(account: Account, customer: Resource, params: dict[str, Any]) -> None:
    apply_fields(customer, params, _FIELDS.keys() - {"invoice_settings"})
    if params.get("address"):
        customer["address"] = dict.fromkeys(_ADDRESS) | params["address"]
    settings = params.get("invoice_settings", {})
    if settings.get("default_payment_method") is not None:
        param = "invoice_settings[default_payment_method]"
        find_customer_card(account, settings["default_payment_method"], customer["id"], param)
    customer["invoice_settings"] |= settings


def _new_customer(now: int) -> Resource:
    return {
        "object": "customer",
        "id": new_id("cus", 14),
        **dict.fromkeys(_NULL),
        "balance": 0,
        "created": now,
        "delinquent": False,
        "invoice_prefix": new_id("x", 8)[2:].upper(),
        "invoice_settings": dict.fromkeys(
            ("custom_fields", "default_payment_method", "footer", "rendering_options")
        ),
        "livemode": False,
        "metadata": {},
        "next_invoice_sequence": 1,
        "preferred_locales": [],
        "tax_exempt": "none",
    }


ROUTES = (
    Route("POST", _PATH, create, takes(**_FIELDS, payment_method=String(), test_clock=String())),
    Route("GET", _PATH, list_all, takes(**PAGE, email=String(), test_clock=String())),
    retrieve_route(_PATH, "customer"),
    Route("POST", f"{_PATH}/{{id}}", update, takes(**_FIELDS)),
    Route("DELETE", f"{_PATH}/{{id}}", delete, takes()),
)
