"""The states of an invoice: draft, finalized, void."""

from stripe_double.account import Account, find, find_param
from stripe_double.billing.discounts import discount_lines, forget_used_discounts, total_discounts
from stripe_double.billing.invoice_lines import Period
from stripe_double.billing.payments import cancel_payment, create_payment
from stripe_double.billing.taxes import add_taxes, has_location, note_missing_location, require_location
from stripe_double.errors import InvalidRequest
from stripe_double.events import emit, emit_changes, undelivered
from stripe_double.resources.prices import MINIMUM_CHARGES
from stripe_double.store import Resource, list_object, new_id

_DRAFT_SECONDS = 3600
_MAX_DRAFT_SECONDS = 72 * 3600
_NULL = (
    "account_name", "account_tax_ids", "application", "automatically_finalizes_at", "custom_fields", "customer_address",
    "customer_account", "customer_email", "customer_name", "customer_phone", "customer_shipping",
    "default_payment_method", "default_source", "description", "due_date", "effective_at", "ending_balance",
    "footer", "from_invoice", "hosted_invoice_url", "invoice_pdf", "last_finalization_error",
    "latest_revision", "next_payment_attempt",
    "number", "on_behalf_of", "parent", "receipt_number", "rendering", "shipping_cost", "shipping_details",
    "statement_descriptor", "status_details", "test_clock", "webhooks_delivered_at",
)  # fmt: skip
_ZERO = (
    "amount_due", "amount_overpaid", "amount_paid", "amount_paid_off_stripe", "amount_remaining", "amount_shipping",
    "attempt_count", "post_payment_credit_notes_amount", "pre_payment_credit_notes_amount", "starting_balance",
)  # fmt: skip
_EMPTY = (
    "customer_tax_ids", "default_tax_rates", "discounts", "total_discount_amounts", "total_pretax_credit_amounts",
    "total_taxes",
)  # fmt: skip


def create_invoice(account: Account, draft: Resource) -> Resource:
    """Store a draft; that of a subscription becomes its latest invoice."""
    if draft["parent"]:
        subscription = find(account, "subscription", draft["parent"]["subscription_details"]["subscription"])
        subscription["latest_invoice"] = draft["id"]
        forget_used_discounts(account, subscription)
    emit(account, "invoice.created", account.add(draft))
    return draft


def new_draft(
    account: Account,
    customer: Resource,
    *,
    reason: str,
    lines: list[Resource],
    currency: str,
    period: Period,
    subscription: Resource | None = None,
    auto_advance: bool = True,
) -> Resource:
    """Return a draft that is not stored: `create_invoice` does that, a preview only shows it."""
    invoice = _new_invoice(account.now, customer, currency, reason, period)
    invoice["test_clock"] = customer["test_clock"]
    identifier = invoice["id"]
    for line in lines:
        line["invoice"] = identifier
    invoice["lines"] = list_object(lines, f"/v1/invoices/{identifier}/lines")
    if subscription is not None:
        invoice["parent"] = {
            "quote_details": None,
            "subscription_details": {
                "metadata": dict(subscription["metadata"]),
                "subscription": subscription["id"],
            },
            "type": "subscription_details",
        }
        invoice["collection_method"] = subscription["collection_method"]
        discount_lines(account, subscription, lines)
        invoice["discounts"] = list(subscription["discounts"])
        invoice["total_discount_amounts"] = total_discounts(lines)
    invoice.update(auto_advance=auto_advance, starting_balance=customer["balance"])
    _add_up(invoice)
    if auto_advance and reason != "subscription_create":
        invoice["automatically_finalizes_at"] = account.now + _DRAFT_SECONDS
    if subscription is not None and subscription["automatic_tax"]["enabled"]:
        items = subscription["items"]["data"]
        add_taxes(invoice, {item["id"]: item["price"]["tax_behavior"] for item in items})
    return invoice


def _add_up(invoice: Resource) -> None:
    subtotal = sum(line["amount"] for line in invoice["lines"]["data"])
    total = subtotal - sum(part["amount"] for part in invoice["total_discount_amounts"])
    invoice.update(dict.fromkeys(("subtotal", "subtotal_excluding_tax"), subtotal))
    invoice.update(dict.fromkeys(("total", "total_excluding_tax"), total))
    invoice["amount_due"] = invoice["amount_remaining"] = max(0, total + invoice["starting_balance"])


def add_line(account: Account, invoice: Resource, line: Resource, *, behaviours: dict[str, str]) -> None:
    """Add a line to the draft of a one-off invoice; `behaviours` are the tax behaviours of its items, by id."""
    if invoice["status"] != "draft":
        raise InvalidRequest("You can only add items to draft invoices.", param="invoice")
    line["invoice"] = invoice["id"]
    invoice["lines"]["data"].append(line)
    _add_up(invoice)
    if invoice["automatic_tax"]["enabled"]:
        add_taxes(invoice, behaviours)
    emit(account, "invoice.updated", invoice)


def remove_lines(account: Account, invoice: Resource, ids: set[str]) -> None:
    """Delete lines of a draft."""
    lines = invoice["lines"]["data"]
    if invoice["status"] != "draft" or not ids <= {line["id"] for line in lines}:
        raise InvalidRequest("You can only remove lines of draft invoices.", param="lines")
    with emit_changes(account, "invoice.updated", invoice):
        invoice["lines"]["data"] = [line for line in lines if line["id"] not in ids]
        taxes = [tax for line in invoice["lines"]["data"] for tax in line["taxes"] or []]
        _add_up(invoice)
        if taxes:
            invoice["total_taxes"] = taxes


def finalization_due_at(account: Account, invoice: Resource) -> int | None:
    """Return when to finalize a draft: an hour after its webhook was delivered, at the latest after 72 hours."""
    is_stuck = invoice["last_finalization_error"] is not None
    if invoice["status"] != "draft" or not invoice["auto_advance"] or is_stuck:
        return None
    for delivery in undelivered(account):
        if delivery["event_type"] == "invoice.created" and delivery["resource"] == invoice["id"]:
            return int(invoice["created"]) + _MAX_DRAFT_SECONDS
    return int(invoice["webhooks_delivered_at"] or invoice["created"]) + _DRAFT_SECONDS


def finalize_invoice(account: Account, invoice: Resource) -> None:
    """Finalize a draft: assign its number, apply the customer's balance, and make it payable."""
    if invoice["status"] != "draft":
        message = "This invoice is already finalized, you can't re-finalize a non-draft invoice."
        raise InvalidRequest(message)
    customer = find_param(account, "customer", invoice["customer"], "customer")
    if invoice["automatic_tax"]["enabled"]:
        require_location(customer)
        invoice["automatic_tax"]["status"] = "complete"
    invoice.update(status="open", automatically_finalizes_at=None, effective_at=account.now)
    invoice["last_finalization_error"] = None
    invoice["status_transitions"]["finalized_at"] = account.now
    invoice["customer_address"] = customer["address"]
    invoice["number"] = f"{customer['invoice_prefix']}-{customer['next_invoice_sequence']:04d}"
    invoice["_secret"] = new_id("test", 40)
    invoice["hosted_invoice_url"] = f"{account.url}/_pages/invoice/{invoice['_secret']}"
    invoice["invoice_pdf"] = f"{invoice['hosted_invoice_url']}.pdf"
    if invoice["parent"]:
        details = invoice["parent"]["subscription_details"]
        subscription = account.store.get("subscription", details["subscription"])
        details["metadata"] = dict(subscription["metadata"]) if subscription else {}
    with emit_changes(account, "customer.updated", customer):
        customer["next_invoice_sequence"] += 1
        _apply_balance(invoice, customer)
    if invoice["amount_due"]:
        create_payment(account, invoice)
    emit(account, "invoice.finalized", invoice)


def try_to_finalize(account: Account, invoice: Resource) -> bool:
    """Finalize a draft, as Stripe does by itself; return whether it could, or note why not."""
    customer = find_param(account, "customer", invoice["customer"], "customer")
    if invoice["automatic_tax"]["enabled"] and not has_location(customer):
        note_missing_location(invoice)
        emit(account, "invoice.finalization_failed", invoice)
        return False
    finalize_invoice(account, invoice)
    return True


def void_invoice(account: Account, invoice: Resource) -> None:
    """Void an invoice."""
    if invoice["status"] not in ("open", "uncollectible"):
        message = f"You can only pass in open invoices. This invoice isn't open: it is {invoice['status']}."
        raise InvalidRequest(message)
    invoice.update(status="void", auto_advance=False, next_payment_attempt=None)
    invoice["status_transitions"]["voided_at"] = account.now
    cancel_payment(account, invoice, "void_invoice")
    emit(account, "invoice.voided", invoice)


def write_off(account: Account, invoice: Resource) -> None:
    """Mark an open invoice as uncollectible."""
    invoice.update(status="uncollectible", auto_advance=False, next_payment_attempt=None)
    invoice["status_transitions"]["marked_uncollectible_at"] = account.now
    emit(account, "invoice.marked_uncollectible", invoice)


def _apply_balance(invoice: Resource, customer: Resource) -> None:
    owed = invoice["total"] + customer["balance"]
    invoice["starting_balance"] = customer["balance"]
    below_minimum = 0 < owed < MINIMUM_CHARGES[invoice["currency"]]
    due = 0 if below_minimum else max(0, owed)
    # A rest below the minimum charge stays owed; a credit above the total stays on the balance.
    customer["balance"] = invoice["ending_balance"] = owed - due
    invoice["amount_due"] = invoice["amount_remaining"] = due


def _new_invoice(now: int, customer: Resource, currency: str, reason: str, period: Period) -> Resource:
    return {
        "object": "invoice",
        "id": new_id("in"),
        **dict.fromkeys(_NULL),
        **dict.fromkeys(_ZERO, 0),
        **{name: [] for name in _EMPTY},
        "account_country": "US",
        "attempted": False,
        "automatic_tax": {
            **dict.fromkeys(("disabled_reason", "liability", "provider", "status")),
            "enabled": False,
        },
        "billing_reason": reason,
        "collection_method": "charge_automatically",
        "created": now,
        "currency": currency,
        "customer": customer["id"],
        "customer_email": customer["email"],
        "customer_name": customer["name"],
        "customer_tax_exempt": customer["tax_exempt"],
        "issuer": {"type": "self"},
        "livemode": False,
        "metadata": {},
        "payment_settings": dict.fromkeys(
            ("default_mandate", "payment_method_options", "payment_method_types")
        ),
        "period_start": period[0],
        "period_end": period[1],
        "status": "draft",
        "status_transitions": dict.fromkeys(
            ("finalized_at", "marked_uncollectible_at", "paid_at", "voided_at")
        ),
    }
