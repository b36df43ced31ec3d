"""Credit notes, issued and voided by the control API."""

from stripe_double.account import Account
from stripe_double.billing.collection import mark_paid
from stripe_double.billing.payments import cancel_payment, change_amount
from stripe_double.errors import InvalidRequest
from stripe_double.events import emit, emit_changes
from stripe_double.parameters import String
from stripe_double.routing import list_route, retrieve_route
from stripe_double.store import Resource, list_object, new_id

_PATH = "/v1/credit_notes"
_NULL = (
    "customer_balance_transaction", "effective_at", "memo", "out_of_band_amount", "reason", "shipping_cost",
    "voided_at",
)  # fmt: skip
_TOTALS = ("amount", "subtotal", "subtotal_excluding_tax", "total", "total_excluding_tax")


def create_credit_note(
    account: Account, invoice: Resource, amount: int | None, *, is_out_of_band: bool = False
) -> Resource:
    """
    Issue a credit note over the amount, or over the rest of the invoice.

    It lowers the amount due of an open invoice, which is paid if nothing is left; for a paid invoice it is added to the
    customer's balance, or was returned outside of Stripe.
    """
    is_open = invoice["status"] == "open"
    credited = invoice["post_payment_credit_notes_amount"]
    left = invoice["amount_remaining"] if is_open else invoice["total"] - credited
    amount = left if amount is None else amount
    if invoice["status"] not in ("open", "paid") or not 0 < amount <= left:
        raise InvalidRequest("The credit note exceeds what is left of the invoice.", param="amount")
    note = account.add(_new_credit_note(account, invoice, amount, before_payment=is_open))
    if is_open:
        _lower_amount_due(account, invoice, amount)
    else:
        note["out_of_band_amount"] = amount if is_out_of_band else None
        _credit(account, invoice, 0 if is_out_of_band else amount, noted=amount)
    emit(account, "credit_note.created", note)
    return note


def void_credit_note(account: Account, note: Resource) -> None:
    """Void the credit note of a paid invoice."""
    if note["status"] != "issued" or not note["post_payment_amount"]:
        raise InvalidRequest("This credit note cannot be voided.")
    note.update(status="void", voided_at=account.now)
    invoice = account.store.get("invoice", note["invoice"]) or {}
    amount = note["post_payment_amount"]
    _credit(account, invoice, 0 if note["out_of_band_amount"] else -amount, noted=-amount)
    emit(account, "credit_note.voided", note)


def _lower_amount_due(account: Account, invoice: Resource, amount: int) -> None:
    with emit_changes(account, "invoice.updated", invoice):
        invoice["pre_payment_credit_notes_amount"] += amount
        invoice["amount_due"] -= amount
        invoice["amount_remaining"] -= amount
    if invoice["amount_remaining"] == 0:
        cancel_payment(account, invoice, "void_invoice")
        mark_paid(account, invoice)
    else:
        change_amount(account, invoice, invoice["amount_remaining"])


def _credit(account: Account, invoice: Resource, to_balance: int, *, noted: int) -> None:
    with emit_changes(account, "invoice.updated", invoice):
        invoice["post_payment_credit_notes_amount"] += noted
    customer = account.store.get("customer", invoice["customer"]) or {}
    with emit_changes(account, "customer.updated", customer):
        customer["balance"] -= to_balance


def _new_credit_note(account: Account, invoice: Resource, amount: int, *, before_payment: bool) -> Resource:
    number = 1 + sum(note["invoice"] == invoice["id"] for note in account.store.all("credit_note"))
    return {
        "object": "credit_note",
        "id": new_id("cn"),
        **dict.fromkeys(_NULL),
        **dict.fromkeys(_TOTALS, amount),
        "amount_shipping": 0,
        "created": account.now,
        "currency": invoice["currency"],
        "customer": invoice["customer"],
        "discount_amount": 0,
        "discount_amounts": [],
        "invoice": invoice["id"],
        "lines": list_object([], "/v1/credit_notes/lines"),
        "livemode": False,
        "metadata": {},
        "number": f"{invoice['number']}-CN-{number:02d}",
        "pdf": "",
        "post_payment_amount": 0 if before_payment else amount,
        "pre_payment_amount": amount if before_payment else 0,
        "pretax_credit_amounts": [],
        "refunds": [],
        "status": "issued",
        "total_taxes": [],
        "type": "mixed",
    }


ROUTES = (
    list_route(_PATH, "credit_note", invoice=String(), customer=String()),
    retrieve_route(_PATH, "credit_note"),
)
