"""Invoices from draft to open, and out of the way when they are void."""

from devstack.stripe.billing.intents import cancel_intent, make_intent
from devstack.stripe.billing.lines import Period
from devstack.stripe.billing.money import SMALLEST
from devstack.stripe.state.account import Account
from devstack.stripe.state.things import Thing, new_id
from devstack.stripe.wire.lists import whole_list
from devstack.stripe.wire.refusals import Invalid

_HOUR = 3600
_PATIENCE = 72 * _HOUR
_NOTHING = (
    "account_name", "account_tax_ids", "application", "automatically_finalizes_at", "custom_fields", "customer_address",
    "customer_email", "customer_name", "customer_phone", "customer_shipping", "default_payment_method",
    "default_source", "description", "due_date", "effective_at", "ending_balance", "footer", "from_invoice",
    "hosted_invoice_url", "invoice_pdf", "last_finalization_error", "latest_revision", "next_payment_attempt",
    "number", "on_behalf_of", "parent", "receipt_number", "rendering", "shipping_cost", "shipping_details",
    "statement_descriptor", "test_clock", "webhooks_delivered_at",
)  # fmt: skip
_ZERO = (
    "amount_due", "amount_overpaid", "amount_paid", "amount_paid_off_stripe", "amount_remaining", "amount_shipping",
    "attempt_count", "post_payment_credit_notes_amount", "pre_payment_credit_notes_amount", "starting_balance",
)  # fmt: skip


def draft(
    account: Account,
    customer: Thing,
    *,
    reason: str,
    lines: list[Thing],
    currency: str,
    period: Period,
    subscription: Thing | None = None,
    auto_advance: bool = True,
) -> Thing:
    """Write an invoice that is not yet binding."""
    identifier = new_id("in")
    invoice = _blank(identifier, customer, currency, reason, period, account.now)
    for line in lines:
        line["invoice"] = identifier
    invoice["lines"] = whole_list(lines, f"/v1/invoices/{identifier}/lines")
    if subscription is not None:
        details = {"metadata": dict(subscription["metadata"]), "subscription": subscription["id"]}
        invoice["parent"] = {
            "quote_details": None,
            "subscription_details": details,
            "type": "subscription_details",
        }
        subscription["latest_invoice"] = identifier
    total = sum(line["amount"] for line in lines)
    for name in ("subtotal", "subtotal_excluding_tax", "total", "total_excluding_tax"):
        invoice[name] = total
    invoice.update(auto_advance=auto_advance, starting_balance=customer["balance"])
    invoice["amount_due"] = invoice["amount_remaining"] = max(0, total + customer["balance"])
    if auto_advance and reason != "subscription_create":
        invoice["automatically_finalizes_at"] = account.now + _HOUR
    account.tell("invoice.created", account.add(invoice))
    return invoice


def finalizes_at(account: Account, invoice: Thing) -> int | None:
    """Return when a draft becomes binding: an hour after its webhook arrived, 72 hours late if it does not."""
    if invoice["status"] != "draft" or not invoice["auto_advance"]:
        return None
    about = ["invoice.created", invoice["id"]]
    if any(delivery["about"] == about for delivery in account.store.all("_delivery")):
        return int(invoice["created"]) + _PATIENCE
    return int(invoice["webhooks_delivered_at"] or invoice["created"]) + _HOUR


def finalize(account: Account, invoice: Thing) -> None:
    """Make the invoice binding: it gets its number, takes in the customer's balance, and can be paid."""
    if invoice["status"] != "draft":
        raise Invalid("This invoice is already finalized, you can't re-finalize a non-draft invoice.")
    customer = account.store.get("customer", invoice["customer"]) or {}
    invoice.update(status="open", automatically_finalizes_at=None, effective_at=account.now)
    invoice["status_transitions"]["finalized_at"] = account.now
    invoice["number"] = f"{customer['invoice_prefix']}-{customer['next_invoice_sequence']:04d}"
    if invoice["parent"]:
        _snapshot_metadata(account, invoice)
    with account.telling("customer.updated", customer):
        customer["next_invoice_sequence"] += 1
        _take_in_balance(invoice, customer)
    if invoice["amount_due"]:
        _prepare_payment(account, invoice)
    account.tell("invoice.finalized", invoice)


def void(account: Account, invoice: Thing) -> None:
    """Declare that the invoice is not owed after all."""
    if invoice["status"] not in ("open", "uncollectible"):
        raise Invalid(
            f"You can only pass in open invoices. This invoice isn't open: it is {invoice['status']}."
        )
    invoice.update(status="void", auto_advance=False, next_payment_attempt=None)
    invoice["status_transitions"]["voided_at"] = account.now
    drop_payment(account, invoice, "void_invoice")
    account.tell("invoice.voided", invoice)


def default_intent(account: Account, invoice: Thing) -> Thing | None:
    """Return the intent that collects the invoice; None where nothing is to be collected."""
    payment = _default_payment(account, invoice)
    return payment and account.store.get("payment_intent", payment["payment"]["payment_intent"])


def settle_payment(account: Account, invoice: Thing, amount: int) -> None:
    """Note on the invoice's payment that it arrived."""
    payment = _default_payment(account, invoice)
    if payment is not None:
        payment.update(status="paid", amount_paid=amount)
        payment["status_transitions"]["paid_at"] = account.now
        account.tell("invoice_payment.paid", payment)


def drop_payment(account: Account, invoice: Thing, reason: str) -> None:
    """Give up the invoice's payment and its intent."""
    payment, intent = _default_payment(account, invoice), default_intent(account, invoice)
    if payment is not None and payment["status"] == "open":
        payment["status"] = "canceled"
        payment["status_transitions"]["canceled_at"] = account.now
    if intent is not None:
        cancel_intent(account, intent, reason)


def _default_payment(account: Account, invoice: Thing) -> Thing | None:
    for payment in account.store.all("invoice_payment"):
        if payment["invoice"] == invoice["id"] and payment["is_default"]:
            return account.store.get("invoice_payment", payment["id"])
    return None


def _snapshot_metadata(account: Account, invoice: Thing) -> None:
    details = invoice["parent"]["subscription_details"]
    subscription = account.store.get("subscription", details["subscription"])
    details["metadata"] = dict(subscription["metadata"]) if subscription else {}


def _take_in_balance(invoice: Thing, customer: Thing) -> None:
    owed = invoice["total"] + customer["balance"]
    invoice["starting_balance"] = customer["balance"]
    too_little = 0 < owed < SMALLEST[invoice["currency"]]
    due = 0 if too_little else max(0, owed)
    # What is too little to charge is owed on; what was paid too much stays in the customer's favour.
    customer["balance"] = invoice["ending_balance"] = owed - due
    invoice["amount_due"] = invoice["amount_remaining"] = due


def _prepare_payment(account: Account, invoice: Thing) -> None:
    first = invoice["billing_reason"] == "subscription_create"
    intent = make_intent(
        account,
        customer=invoice["customer"],
        amount=invoice["amount_due"],
        currency=invoice["currency"],
        description="Subscription creation" if first else "Subscription update",
    )
    account.add(
        {
            "object": "invoice_payment",
            "id": new_id("inpay"),
            "amount_paid": None,
            "amount_requested": invoice["amount_due"],
            "created": account.now,
            "currency": invoice["currency"],
            "invoice": invoice["id"],
            "is_default": True,
            "livemode": False,
            "payment": {"payment_intent": intent["id"], "type": "payment_intent"},
            "status": "open",
            "status_transitions": {"canceled_at": None, "paid_at": None},
        }
    )


def _blank(identifier: str, customer: Thing, currency: str, reason: str, period: Period, now: int) -> Thing:
    return {
        "object": "invoice",
        "id": identifier,
        **dict.fromkeys(_ZERO, 0),
        **dict.fromkeys(_NOTHING),
        "account_country": "US",
        "attempted": False,
        "automatic_tax": {
            "disabled_reason": None,
            "enabled": False,
            "liability": None,
            "provider": None,
            "status": None,
        },
        "billing_reason": reason,
        "collection_method": "charge_automatically",
        "created": now,
        "currency": currency,
        "customer": customer["id"],
        "customer_email": customer["email"],
        "customer_name": customer["name"],
        "customer_tax_exempt": customer["tax_exempt"],
        "customer_tax_ids": [],
        "default_tax_rates": [],
        "discounts": [],
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
        "total_discount_amounts": [],
        "total_pretax_credit_amounts": [],
        "total_taxes": [],
    }
