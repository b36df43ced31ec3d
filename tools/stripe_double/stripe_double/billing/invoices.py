"""Invoices: the routes."""

from typing import Any

from stripe_double.account import Account, find, find_customer_card, find_param
from stripe_double.billing.collection import (
    collect_invoice,
    mark_paid,
    payment_method_for,
    require_one_currency,
    void_and_update_subscription,
)
from stripe_double.billing.invoicing import (
    create_invoice,
    finalize_invoice,
    new_draft,
    remove_lines,
    write_off,
)
from stripe_double.billing.payments import is_processing, payment_intent_of
from stripe_double.billing.renewals import next_lines, renews_at
from stripe_double.billing.taxes import require_location
from stripe_double.errors import InvalidRequest, RecordedCardError
from stripe_double.events import emit
from stripe_double.parameters import CURSORS, Array, Boolean, Enum, Hash, Metadata, String, takes
from stripe_double.resources.prices import parse_currency
from stripe_double.routing import Route, list_route, paginate, retrieve_route
from stripe_double.store import Resource, apply_fields, public

_PATH = "/v1/invoices"


def create(account: Account, params: dict[str, Any]) -> Resource:
    """Create the draft of a one-off invoice, without lines; invoice items are added to it."""
    customer = find_param(account, "customer", params["customer"], "customer")
    currency = parse_currency(params.get("currency") or customer["currency"] or "usd", "currency")
    require_one_currency(account, customer, currency)
    invoice = new_draft(
        account,
        customer,
        reason="manual",
        lines=[],
        currency=currency,
        period=(account.now, account.now),
        auto_advance=params.get("auto_advance", False),
    )
    apply_fields(invoice, params, ("metadata", "description"))
    invoice["payment_settings"] |= params.get("payment_settings", {})
    if params.get("automatic_tax", {}).get("enabled"):
        require_location(customer)
        invoice["automatic_tax"]["enabled"] = True
    return create_invoice(account, invoice)


def delete(account: Account, _params: dict[str, Any], identifier: str) -> Resource:
    """Delete the draft of a one-off invoice."""
    invoice = find(account, "invoice", identifier)
    if invoice["status"] != "draft" or invoice["parent"]:
        raise InvalidRequest("You can only delete draft invoices that are not for a subscription.")
    emit(account, "invoice.deleted", invoice)
    account.store.remove("invoice", identifier)
    return {"id": identifier, "object": "invoice", "deleted": True}


def pay(account: Account, params: dict[str, Any], identifier: str) -> Resource:
    """Collect an invoice now, or mark it as paid outside of Stripe."""
    invoice = find(account, "invoice", identifier)
    if invoice["status"] == "draft":
        finalize_invoice(account, invoice)
    if invoice["status"] == "paid":
        raise InvalidRequest("Invoice is already paid")
    if invoice["status"] != "open":
        raise InvalidRequest(f"You can only pay an open invoice; this one is {invoice['status']}.")
    if is_processing(account, invoice):
        raise InvalidRequest("You cannot pay this invoice while a payment of it is processing.")
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
    if status not in ("succeeded", "processing"):
        raise _card_error(payment_intent_of(account, invoice) or {}, status)
    return invoice


def finalize(account: Account, _params: dict[str, Any], identifier: str) -> Resource:
    """Finalize a draft; it is collected at the next attempt."""
    invoice = find(account, "invoice", identifier)
    finalize_invoice(account, invoice)
    return invoice


def void(account: Account, _params: dict[str, Any], identifier: str) -> Resource:
    """Void an invoice, unless the bank still processes its payment."""
    invoice = find(account, "invoice", identifier)
    if is_processing(account, invoice):
        raise InvalidRequest("You cannot void this invoice while a payment of it is processing.")
    void_and_update_subscription(account, invoice)
    return invoice


def mark_uncollectible(account: Account, _params: dict[str, Any], identifier: str) -> Resource:
    """Write an open invoice off."""
    invoice = find(account, "invoice", identifier)
    if invoice["status"] != "open":
        raise InvalidRequest(f"You can only write off an open invoice; this one is {invoice['status']}.")
    write_off(account, invoice)
    return invoice


def preview(account: Account, params: dict[str, Any]) -> Resource:
    """Return the next invoice of a subscription as it would be; nothing is stored."""
    subscription = find_param(account, "subscription", params["subscription"], "subscription")
    renewal = renews_at(subscription)
    if renewal is None or subscription["cancel_at"] == renewal:
        message = f"No upcoming invoices for customer: {subscription['customer']}"
        raise InvalidRequest(message, code="invoice_upcoming_none", status=404)
    lines, period = next_lines(account, subscription)
    return new_draft(
        account,
        account.store.get("customer", subscription["customer"]) or {},
        reason="upcoming",
        lines=lines,
        currency=subscription["currency"],
        period=period,
        subscription=subscription,
    )


def lines(account: Account, params: dict[str, Any], identifier: str) -> Resource:
    """Return a page of an invoice's lines, in their order."""
    invoice = find(account, "invoice", identifier)
    return paginate(invoice["lines"]["data"][::-1], params, f"{_PATH}/{identifier}/lines")


def delete_lines(account: Account, params: dict[str, Any], identifier: str) -> Resource:
    """Delete lines of a draft."""
    invoice = find(account, "invoice", identifier)
    remove_lines(account, invoice, {line["id"] for line in params["lines"]})
    return invoice


def _bills(invoice: Resource, subscription: str) -> bool:
    details = (invoice["parent"] or {}).get("subscription_details") or {}
    return bool(details.get("subscription") == subscription)


def _card_error(intent: Resource, status: str) -> RecordedCardError:
    error = intent["last_payment_error"]
    if status == "requires_action":
        message = "This payment requires additional user action before it can be completed successfully."
        error = {"code": "invoice_payment_intent_requires_action", "message": message}
    return RecordedCardError({**error, "payment_intent": public(intent)})


_CREATE = takes(
    "customer",
    auto_advance=Boolean(),
    automatic_tax=Hash({"enabled": Boolean()}),
    collection_method=Enum(("charge_automatically",)),
    currency=String(3),
    customer=String(),
    description=String(),
    metadata=Metadata(),
    payment_settings=Hash({"payment_method_types": Array(Enum(("card",)))}),
    # Items that wait for a subscription's next invoice stay there.
    pending_invoice_items_behavior=Enum(("exclude",)),
)
_REMOVE_LINES = takes(
    "lines",
    lines=Array(
        Hash({"behavior": Enum(("delete",)), "id": String()}, required=("behavior", "id")), max_items=250
    ),
)
_PAY = takes(off_session=Boolean(), paid_out_of_band=Boolean(), payment_method=String())
ROUTES = (
    list_route(
        _PATH,
        "invoice",
        filters={"subscription": _bills},
        customer=String(),
        status=Enum(("draft", "open", "paid", "uncollectible", "void")),
        subscription=String(),
    ),
    Route("POST", f"{_PATH}/create_preview", preview, takes("subscription", subscription=String())),
    Route("GET", f"{_PATH}/{{id}}/lines", lines, takes(**CURSORS)),
    retrieve_route(_PATH, "invoice"),
    Route("POST", _PATH, create, _CREATE),
    Route("DELETE", f"{_PATH}/{{id}}", delete, takes()),
    Route("POST", f"{_PATH}/{{id}}/pay", pay, _PAY),
    Route("POST", f"{_PATH}/{{id}}/finalize", finalize, takes()),
    Route("POST", f"{_PATH}/{{id}}/void", void, takes()),
    Route("POST", f"{_PATH}/{{id}}/remove_lines", delete_lines, _REMOVE_LINES),
    Route("POST", f"{_PATH}/{{id}}/mark_uncollectible", mark_uncollectible, takes()),
)
