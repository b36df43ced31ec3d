"""Invoices from draft to open, and out of the way when they are void."""

from devstack.stripe.billing.blank_invoice import blank_invoice
from devstack.stripe.billing.lines import Period
from devstack.stripe.billing.money import SMALLEST
from devstack.stripe.billing.payments import drop_payment, prepare_payment
from devstack.stripe.events.telling import undelivered
from devstack.stripe.state.account import Account
from devstack.stripe.state.things import Thing, new_id
from devstack.stripe.wire.finding import named
from devstack.stripe.wire.lists import whole_list
from devstack.stripe.wire.refusals import Invalid

_HOUR = 3600
_PATIENCE = 72 * _HOUR


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
    invoice = blank_invoice(identifier, customer, currency, reason, period, account.now)
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
    if any(delivery["about"] == about for delivery in undelivered(account)):
        return int(invoice["created"]) + _PATIENCE
    return int(invoice["webhooks_delivered_at"] or invoice["created"]) + _HOUR


def finalize(account: Account, invoice: Thing) -> None:
    """Make the invoice binding: it gets its number, takes in the customer's balance, and can be paid."""
    if invoice["status"] != "draft":
        raise Invalid("This invoice is already finalized, you can't re-finalize a non-draft invoice.")
    customer = named(account, "customer", invoice["customer"], "customer")
    invoice.update(status="open", automatically_finalizes_at=None, effective_at=account.now)
    invoice["status_transitions"]["finalized_at"] = account.now
    invoice["number"] = f"{customer['invoice_prefix']}-{customer['next_invoice_sequence']:04d}"
    if invoice["parent"]:
        _snapshot_metadata(account, invoice)
    with account.telling("customer.updated", customer):
        customer["next_invoice_sequence"] += 1
        _take_in_balance(invoice, customer)
    if invoice["amount_due"]:
        prepare_payment(account, invoice)
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
