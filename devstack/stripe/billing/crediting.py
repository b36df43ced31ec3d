"""Credit notes: what an invoice asks for is taken back, before or after it was paid."""

from devstack.stripe.billing.collecting import mark_paid
from devstack.stripe.billing.payments import ask_for, drop_payment
from devstack.stripe.state.account import Account
from devstack.stripe.state.things import Thing, new_id
from devstack.stripe.wire.refusals import Invalid


def credit(account: Account, invoice: Thing, amount: int | None) -> Thing:
    """
    Write a credit note, over all that the invoice still asks for unless told otherwise.

    An open invoice asks for that much less, and is paid where nothing is left; what a
    paid invoice is credited with goes to the customer's balance.
    """
    open_ = invoice["status"] == "open"
    left = (
        invoice["amount_remaining"]
        if open_
        else invoice["total"] - invoice["post_payment_credit_notes_amount"]
    )
    chosen = left if amount is None else amount
    if invoice["status"] not in ("open", "paid") or not 0 < chosen <= left:
        raise Invalid("The credit note exceeds what the invoice asks for.", param="amount")
    note = account.add(_blank(account, invoice, chosen, before_payment=open_))
    if open_:
        _ask_less(account, invoice, chosen)
    else:
        _owe_customer(account, invoice, chosen)
    account.tell("credit_note.created", note)
    return note


def _ask_less(account: Account, invoice: Thing, amount: int) -> None:
    with account.telling("invoice.updated", invoice):
        invoice["pre_payment_credit_notes_amount"] += amount
        invoice["amount_due"] -= amount
        invoice["amount_remaining"] -= amount
    if invoice["amount_remaining"] == 0:
        drop_payment(account, invoice, "void_invoice")
        mark_paid(account, invoice)
    else:
        ask_for(account, invoice, invoice["amount_remaining"])


def _owe_customer(account: Account, invoice: Thing, amount: int) -> None:
    with account.telling("invoice.updated", invoice):
        invoice["post_payment_credit_notes_amount"] += amount
    customer = account.store.get("customer", invoice["customer"]) or {}
    with account.telling("customer.updated", customer):
        customer["balance"] -= amount


def _blank(account: Account, invoice: Thing, amount: int, *, before_payment: bool) -> Thing:
    nothing = (
        "customer_balance_transaction",
        "effective_at",
        "memo",
        "out_of_band_amount",
        "reason",
        "shipping_cost",
    )
    number = f"{invoice['number']}-CN-{account.next_number(invoice['id']):02d}"
    totals = ("amount", "subtotal", "subtotal_excluding_tax", "total", "total_excluding_tax")
    return {
        "object": "credit_note",
        "id": new_id("cn"),
        **dict.fromkeys(nothing),
        **dict.fromkeys(totals, amount),
        "amount_shipping": 0,
        "created": account.now,
        "currency": invoice["currency"],
        "customer": invoice["customer"],
        "discount_amount": 0,
        "discount_amounts": [],
        "invoice": invoice["id"],
        "lines": {"object": "list", "data": [], "has_more": False, "url": "/v1/credit_notes/lines"},
        "livemode": False,
        "metadata": {},
        "number": number,
        "pdf": "",
        "post_payment_amount": 0 if before_payment else amount,
        "pre_payment_amount": amount if before_payment else 0,
        "pretax_credit_amounts": [],
        "refunds": [],
        "status": "issued",
        "total_taxes": [],
        "type": "mixed",
        "voided_at": None,
    }
