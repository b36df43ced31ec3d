"""What is done to invoices at the dashboard."""

from typing import Any

from devstack.stripe.billing.collecting import collect, mark_paid
from devstack.stripe.billing.crediting import credit
from devstack.stripe.billing.invoicing import draft, finalize
from devstack.stripe.billing.lines import manual_line
from devstack.stripe.billing.money import known_currency
from devstack.stripe.control.desk import Body, Desk, needed, wanted
from devstack.stripe.state.things import public
from devstack.stripe.wire.refusals import Invalid


def pay_out_of_band(desk: Desk, body: Body) -> Any:
    """Note that an invoice was paid outside of Stripe."""
    invoice = wanted(desk, "invoice", body)
    if invoice["status"] == "draft":
        finalize(desk.account, invoice)
    if invoice["status"] != "open":
        raise Invalid(f"This invoice is {invoice['status']}.")
    mark_paid(desk.account, invoice, off_stripe=invoice["amount_remaining"])
    return public(invoice)


def bill(desk: Desk, body: Body) -> Any:
    """Sell a customer something beside all subscriptions, and collect it at once."""
    account, customer = desk.account, wanted(desk, "customer", body)
    currency = known_currency(body.get("currency") or customer["currency"] or "usd", "currency")
    line = manual_line(account, int(needed(body, "amount")), currency)
    moment = (account.now, account.now)
    invoice = draft(account, customer, reason="manual", lines=[line], currency=currency, period=moment)
    finalize(account, invoice)
    collect(account, invoice, off_session=True)
    return public(invoice)


def credit_invoice(desk: Desk, body: Body) -> Any:
    """Write a credit note for an invoice, over all that is left unless an amount is given."""
    return public(credit(desk.account, wanted(desk, "invoice", body), body.get("amount")))


CONTROLS = {
    ("POST", "invoices/pay_out_of_band"): pay_out_of_band,
    ("POST", "invoices/bill"): bill,
    ("POST", "invoices/credit"): credit_invoice,
}
