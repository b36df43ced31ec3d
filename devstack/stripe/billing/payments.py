"""The payment of an invoice, and the intent that collects it."""

from devstack.stripe.billing.intents import cancel_intent, make_intent
from devstack.stripe.state.account import Account
from devstack.stripe.state.things import Thing, new_id


def prepare_payment(account: Account, invoice: Thing) -> None:
    """Let an intent wait for the amount that is due."""
    first = invoice["billing_reason"] == "subscription_create"
    intent = make_intent(
        account,
        customer=invoice["customer"],
        amount=invoice["amount_due"],
        currency=invoice["currency"],
        description="Subscription creation" if first else "Subscription update",
    )
    intent["_invoice"] = invoice["id"]
    payment = account.add(
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
    invoice["_payment"] = payment["id"]


def invoice_of(account: Account, intent: Thing) -> Thing | None:
    """Return the invoice that the intent collects."""
    return account.store.get("invoice", intent["_invoice"])


def default_intent(account: Account, invoice: Thing) -> Thing | None:
    """Return the intent that collects the invoice; None where nothing is to be collected."""
    payment = _default_payment(account, invoice)
    return payment and account.store.get("payment_intent", payment["payment"]["payment_intent"])


def ask_for(account: Account, invoice: Thing, amount: int) -> None:
    """Collect this amount instead."""
    payment, intent = _default_payment(account, invoice), default_intent(account, invoice)
    if payment is not None and intent is not None:
        payment["amount_requested"] = intent["amount"] = amount


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
    return account.store.get("invoice_payment", invoice.get("_payment", ""))
