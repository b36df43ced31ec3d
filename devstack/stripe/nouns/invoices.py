"""Invoices."""

from typing import Any

from devstack.stripe.billing.collecting import card_for, collect, mark_paid
from devstack.stripe.billing.invoicing import draft, finalize, void
from devstack.stripe.billing.payments import default_intent
from devstack.stripe.billing.standing import invoice_voided
from devstack.stripe.state.account import Account
from devstack.stripe.state.things import Thing, public
from devstack.stripe.wire.finding import find, merge_metadata, named, owned_card
from devstack.stripe.wire.lists import page
from devstack.stripe.wire.parameters import METADATA, PAGE, takes
from devstack.stripe.wire.refusals import CardRefusedOnRecord, Invalid
from devstack.stripe.wire.routes import Route
from devstack.stripe.wire.shapes import Choice, Flag, Shape, Text

_PATH = "/v1/invoices"
_STATUS = Choice(("draft", "open", "paid", "uncollectible", "void"))
_FIELDS: dict[str, Shape] = {
    "auto_advance": Flag(),
    "default_payment_method": Text(),
    "description": Text(1500, clearable=True),
    "metadata": METADATA,
}


def create(account: Account, params: dict[str, Any]) -> Thing:
    """Draft an invoice by hand; it has no lines, because this account knows no invoice items."""
    customer = named(account, "customer", params["customer"], "customer")
    currency = params.get("currency") or customer["currency"] or "usd"
    moment = (account.now, account.now)
    advance = params.get("auto_advance", False)
    invoice = draft(
        account, customer, reason="manual", lines=[], currency=currency, period=moment, auto_advance=advance
    )
    _apply(account, invoice, params)
    return invoice


def retrieve(account: Account, _params: dict[str, Any], identifier: str) -> Thing:
    """Return an invoice."""
    return find(account, "invoice", identifier)


def update(account: Account, params: dict[str, Any], identifier: str) -> Thing:
    """Change an invoice that has not ended."""
    invoice = find(account, "invoice", identifier)
    with account.telling("invoice.updated", invoice):
        _apply(account, invoice, params)
    return invoice


def list_all(account: Account, params: dict[str, Any]) -> Thing:
    """Return a page of invoices."""
    found = account.store.all("invoice")
    for name in ("customer", "status", "collection_method"):
        if name in params:
            found = [item for item in found if item[name] == params[name]]
    if "subscription" in params:
        found = [item for item in found if _subscription(item) == params["subscription"]]
    return page(found, params, _PATH)


def finalize_now(account: Account, _params: dict[str, Any], identifier: str) -> Thing:
    """Make a draft binding; one that needs no money is paid with it."""
    invoice = find(account, "invoice", identifier)
    finalize(account, invoice)
    if default_intent(account, invoice) is None:
        mark_paid(account, invoice)
    return invoice


def pay(account: Account, params: dict[str, Any], identifier: str) -> Thing:
    """Collect an invoice now, or note that it was paid outside of Stripe."""
    invoice = find(account, "invoice", identifier)
    if invoice["status"] == "draft":
        finalize(account, invoice)
    if invoice["status"] == "paid":
        raise Invalid("Invoice is already paid")
    if invoice["status"] != "open":
        raise Invalid(f"You can only pay an open invoice; this one is {invoice['status']}.")
    if params.get("paid_out_of_band"):
        mark_paid(account, invoice, off_stripe=invoice["amount_remaining"])
        return invoice
    if "payment_method" in params:
        owned_card(account, params["payment_method"], invoice["customer"], "payment_method")
    chosen = params.get("payment_method") or card_for(account, invoice)
    if chosen is None and default_intent(account, invoice) is not None:
        message = "This customer has no attached payment source or default payment method."
        raise Invalid(message, code="resource_missing")
    status = collect(account, invoice, off_session=params.get("off_session", True), method=chosen)
    if status != "succeeded":
        raise _unpaid(default_intent(account, invoice) or {}, status)
    return invoice


def void_now(account: Account, _params: dict[str, Any], identifier: str) -> Thing:
    """Declare that an invoice is not owed."""
    invoice = find(account, "invoice", identifier)
    void(account, invoice)
    invoice_voided(account, invoice)
    return invoice


def _subscription(invoice: Thing) -> str | None:
    details = (invoice["parent"] or {}).get("subscription_details") or {}
    return details.get("subscription")


def _apply(account: Account, invoice: Thing, params: dict[str, Any]) -> None:
    if "default_payment_method" in params:
        owned_card(account, params["default_payment_method"], invoice["customer"], "default_payment_method")
    for name in ("auto_advance", "default_payment_method", "description"):
        if name in params:
            invoice[name] = params[name]
    if "metadata" in params:
        merge_metadata(invoice, params["metadata"])


def _unpaid(intent: Thing, status: str) -> CardRefusedOnRecord:
    if status == "requires_action":
        message = "This payment requires additional user action before it can be completed successfully."
        code = "invoice_payment_intent_requires_action"
        return CardRefusedOnRecord({"code": code, "message": message, "payment_intent": public(intent)})
    return CardRefusedOnRecord({**intent["last_payment_error"], "payment_intent": public(intent)})


_PAY = takes(off_session=Flag(), paid_out_of_band=Flag(), payment_method=Text())
ROUTES = (
    Route("POST", _PATH, create, takes("customer", **_FIELDS, customer=Text(), currency=Text(3))),
    Route("GET", _PATH, list_all, takes(**PAGE, customer=Text(), status=_STATUS, subscription=Text())),
    Route("GET", f"{_PATH}/{{id}}", retrieve, takes()),
    Route("POST", f"{_PATH}/{{id}}", update, takes(**_FIELDS)),
    Route("POST", f"{_PATH}/{{id}}/finalize", finalize_now, takes(auto_advance=Flag())),
    Route("POST", f"{_PATH}/{{id}}/pay", pay, _PAY),
    Route("POST", f"{_PATH}/{{id}}/void", void_now, takes()),
)
