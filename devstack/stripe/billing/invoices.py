"""Invoices: the routes."""

from typing import Any

from devstack.stripe.account import Account, find, find_customer_card, find_param
from devstack.stripe.billing.collection import (
    collect_invoice,
    mark_paid,
    payment_method_for,
    void_and_update_subscription,
)
from devstack.stripe.billing.invoicing import create_invoice, finalize_invoice
from devstack.stripe.billing.payments import payment_intent_of
from devstack.stripe.errors import InvalidRequest, RecordedCardError
from devstack.stripe.events import emit_changes
from devstack.stripe.parameters import Boolean, Enum, Metadata, Parameter, String, takes
from devstack.stripe.routing import Route, list_route, retrieve_route
from devstack.stripe.store import Resource, apply_fields, public

_PATH = "/v1/invoices"
_FIELDS: dict[str, Parameter] = {
    "auto_advance": Boolean(),
    "default_payment_method": String(),
    "description": String(1500, can_unset=True),
    "metadata": Metadata(),
}


def create(account: Account, params: dict[str, Any]) -> Resource:
    """Create a draft without lines: this account has no invoice items."""
    customer = find_param(account, "customer", params["customer"], "customer")
    invoice = create_invoice(
        account,
        customer,
        reason="manual",
        lines=[],
        currency=params.get("currency") or customer["currency"] or "usd",
        period=(account.now, account.now),
        auto_advance=params.get("auto_advance", False),
    )
    _apply(account, invoice, params)
    return invoice


def update(account: Account, params: dict[str, Any], identifier: str) -> Resource:
    """Change an invoice."""
    invoice = find(account, "invoice", identifier)
    with emit_changes(account, "invoice.updated", invoice):
        _apply(account, invoice, params)
    return invoice


def finalize(account: Account, _params: dict[str, Any], identifier: str) -> Resource:
    """Finalize a draft; with nothing due it is paid at once."""
    invoice = find(account, "invoice", identifier)
    finalize_invoice(account, invoice)
    if payment_intent_of(account, invoice) is None:
        mark_paid(account, invoice)
    return invoice


def pay(account: Account, params: dict[str, Any], identifier: str) -> Resource:
    """Collect an invoice now, or mark it as paid outside of Stripe."""
    invoice = find(account, "invoice", identifier)
    if invoice["status"] == "draft":
        finalize_invoice(account, invoice)
    if invoice["status"] == "paid":
        raise InvalidRequest("Invoice is already paid")
    if invoice["status"] != "open":
        raise InvalidRequest(f"You can only pay an open invoice; this one is {invoice['status']}.")
    if params.get("paid_out_of_band"):
        mark_paid(account, invoice, off_stripe=invoice["amount_remaining"])
        return invoice
    if "payment_method" in params:
        find_customer_card(account, params["payment_method"], invoice["customer"], "payment_method")
    payment_method = params.get("payment_method") or payment_method_for(account, invoice)
    if payment_method is None and payment_intent_of(account, invoice) is not None:
        message = "This customer has no attached payment source or default payment method."
        raise InvalidRequest(message, code="resource_missing")
    off_session = params.get("off_session", True)
    status = collect_invoice(account, invoice, off_session=off_session, payment_method=payment_method)
    if status != "succeeded":
        raise _card_error(payment_intent_of(account, invoice) or {}, status)
    return invoice


def void(account: Account, _params: dict[str, Any], identifier: str) -> Resource:
    """Void an invoice."""
    invoice = find(account, "invoice", identifier)
    void_and_update_subscription(account, invoice)
    return invoice


def _apply(account: Account, invoice: Resource, params: dict[str, Any]) -> None:
    if "default_payment_method" in params:
        card, customer = params["default_payment_method"], invoice["customer"]
        find_customer_card(account, card, customer, "default_payment_method")
    apply_fields(invoice, params, _FIELDS)


def _bills(invoice: Resource, subscription: str) -> bool:
    details = (invoice["parent"] or {}).get("subscription_details") or {}
    return bool(details.get("subscription") == subscription)


def _card_error(intent: Resource, status: str) -> RecordedCardError:
    error = intent["last_payment_error"]
    if status == "requires_action":
        message = "This payment requires additional user action before it can be completed successfully."
        error = {"code": "invoice_payment_intent_requires_action", "message": message}
    return RecordedCardError({**error, "payment_intent": public(intent)})


_CREATE = takes("customer", **_FIELDS, customer=String(), currency=String(3))
_PAY = takes(off_session=Boolean(), paid_out_of_band=Boolean(), payment_method=String())
ROUTES = (
    Route("POST", _PATH, create, _CREATE),
    list_route(
        _PATH,
        "invoice",
        filters={"subscription": _bills},
        customer=String(),
        status=Enum(("draft", "open", "paid", "uncollectible", "void")),
        subscription=String(),
    ),
    retrieve_route(_PATH, "invoice"),
    Route("POST", f"{_PATH}/{{id}}", update, takes(**_FIELDS)),
    Route("POST", f"{_PATH}/{{id}}/finalize", finalize, takes(auto_advance=Boolean())),
    Route("POST", f"{_PATH}/{{id}}/pay", pay, _PAY),
    Route("POST", f"{_PATH}/{{id}}/void", void, takes()),
)
