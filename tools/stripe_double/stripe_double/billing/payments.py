"""The payment of an invoice: its invoice payment and payment intent."""

from stripe_double.account import Account
from stripe_double.errors import InvalidRequest
from stripe_double.events import emit
from stripe_double.resources.cards import card_of, decline_error, next_action, requires_authentication
from stripe_double.resources.charges import record_charge
from stripe_double.resources.disputes import open_dispute
from stripe_double.store import Resource, new_id, public

OPEN_STATUSES = ("requires_payment_method", "requires_confirmation", "requires_action")
_NULL = (
    "allowed_payment_method_types", "application", "application_fee_amount", "automatic_payment_methods",
    "canceled_at", "cancellation_reason", "customer_account", "excluded_payment_method_types",
    "last_payment_error", "latest_charge", "managed_payments", "next_action", "on_behalf_of", "payment_method",
    "payment_method_configuration_details", "processing", "receipt_email", "review", "shipping",
    "statement_descriptor", "statement_descriptor_suffix", "transfer_data", "transfer_group",
)  # fmt: skip


def create_payment(account: Account, invoice: Resource) -> None:
    """Create the payment of an invoice, which requires a payment method."""
    _, payment = _new_payment(account, invoice, invoice["amount_due"], is_default=True)
    invoice["_payment"] = payment["id"]


def pay_part(account: Account, invoice: Resource, method: Resource, amount: int) -> None:
    """Collect a part of an open invoice by a payment of its own; the default payment collects the rest."""
    intent, payment = _new_payment(account, invoice, amount, is_default=False)
    if attempt_payment(account, intent, method, off_session=True) != "succeeded":
        raise InvalidRequest("The card was declined.", code="card_declined")
    _mark_paid(account, payment, amount)
    invoice["amount_paid"] += amount
    invoice["amount_remaining"] -= amount
    change_amount(account, invoice, invoice["amount_remaining"])


def _new_payment(
    account: Account, invoice: Resource, amount: int, *, is_default: bool
) -> tuple[Resource, Resource]:
    intent = account.add(_new_payment_intent(account, invoice, amount))
    emit(account, "payment_intent.created", intent)
    payment: Resource = {
        "object": "invoice_payment",
        "id": new_id("inpay"),
        "amount_paid": None,
        "amount_requested": amount,
        "created": account.now,
        "currency": invoice["currency"],
        "invoice": invoice["id"],
        "is_default": is_default,
        "livemode": False,
        "payment": {"payment_intent": intent["id"], "type": "payment_intent"},
        "status": "open",
        "status_transitions": {"canceled_at": None, "paid_at": None},
    }
    return intent, account.add(payment)


def invoice_of(account: Account, intent: Resource) -> Resource | None:
    """Return the invoice that the intent collects."""
    return account.store.get("invoice", intent["_invoice"])


def payment_intent_of(account: Account, invoice: Resource) -> Resource | None:
    """Return the intent that collects the invoice; None if nothing is due."""
    payment = _payment_of(account, invoice)
    return payment and account.store.get("payment_intent", payment["payment"]["payment_intent"])


def change_amount(account: Account, invoice: Resource, amount: int) -> None:
    """Change the amount to collect."""
    payment, intent = _payment_of(account, invoice), payment_intent_of(account, invoice)
    if payment is not None and intent is not None:
        payment["amount_requested"] = intent["amount"] = amount


def mark_payment_paid(account: Account, invoice: Resource, amount: int) -> None:
    """Mark the payment of the invoice as paid."""
    payment = _payment_of(account, invoice)
    if payment is not None:
        _mark_paid(account, payment, amount)


def _mark_paid(account: Account, payment: Resource, amount: int) -> None:
    payment.update(status="paid", amount_paid=amount)
    payment["status_transitions"]["paid_at"] = account.now
    emit(account, "invoice_payment.paid", payment)


def cancel_payment(account: Account, invoice: Resource, reason: str) -> None:
    """Cancel the payment of the invoice and its intent, unless they have ended."""
    payment, intent = _payment_of(account, invoice), payment_intent_of(account, invoice)
    if payment is not None and payment["status"] == "open":
        payment["status"] = "canceled"
        payment["status_transitions"]["canceled_at"] = account.now
    if intent is not None and intent["status"] in OPEN_STATUSES:
        intent.update(
            status="canceled", canceled_at=account.now, cancellation_reason=reason, next_action=None
        )
        emit(account, "payment_intent.canceled", intent)


def attempt_payment(
    account: Account, intent: Resource, method: Resource, *, off_session: bool, return_url: str | None = None
) -> str:
    """Charge the card; return the intent's status afterwards."""
    intent["payment_method"] = method["id"]
    if off_session and account.setting("off_session", "action") == "processing":
        intent["status"] = "processing"
        emit(account, "payment_intent.processing", intent)
        return "processing"
    if requires_authentication(method, off_session=off_session):
        if off_session and account.setting("off_session", "action") == "decline":
            error = decline_error("authentication_required") | {"payment_method": public(method)}
            return _fail(account, intent, error)
        intent.update(status="requires_action", next_action=next_action(account, intent, return_url))
        emit(account, "payment_intent.requires_action", intent)
        return "requires_action"
    return _charge(account, intent, method)


def complete_challenge(account: Account, intent: Resource, *, succeeds: bool) -> str:
    """Continue after the 3-D Secure challenge; return the intent's status afterwards."""
    intent["next_action"] = None
    method = account.store.get("payment_method", intent["payment_method"])
    if succeeds and method is not None:
        return _charge(account, intent, method)
    message = (
        "The provided PaymentMethod has failed authentication. Provide payment_method_data or a new one."
    )
    error: Resource = {
        "code": "payment_intent_authentication_failure",
        "message": message,
        "payment_method": public(method),
        "type": "invalid_request_error",
    }
    return _fail(account, intent, error)


def settle_processing(account: Account, intent: Resource, *, decline_code: str | None) -> str:
    """End the processing of a payment: charge the card, or decline it; return the intent's status afterwards."""
    method = account.store.get("payment_method", intent["payment_method"])
    if decline_code is None and method is not None:
        return _charge(account, intent, method)
    return _fail(account, intent, decline_error(decline_code or "generic_decline"))


def is_processing(account: Account, invoice: Resource) -> bool:
    """Return whether the bank still processes the payment of the invoice."""
    intent = payment_intent_of(account, invoice)
    return intent is not None and intent["status"] == "processing"


def _charge(account: Account, intent: Resource, method: Resource) -> str:
    card = card_of(method)
    charge = record_charge(account, intent, method, card.charge_decline)
    intent["latest_charge"] = charge["id"]
    if card.charge_decline:
        error = decline_error(card.charge_decline)
        return _fail(account, intent, error | {"charge": charge["id"], "payment_method": public(method)})
    intent.update(
        status="succeeded", amount_received=intent["amount"], last_payment_error=None, next_action=None
    )
    emit(account, "payment_intent.succeeded", intent)
    if card.dispute_reason:
        open_dispute(account, charge, reason=card.dispute_reason)
    return "succeeded"


def _fail(account: Account, intent: Resource, error: Resource) -> str:
    intent.update(status="requires_payment_method", payment_method=None, last_payment_error=error)
    emit(account, "payment_intent.payment_failed", intent)
    return "requires_payment_method"


def _payment_of(account: Account, invoice: Resource) -> Resource | None:
    return account.store.get("invoice_payment", invoice.get("_payment", ""))


def _new_payment_intent(account: Account, invoice: Resource, amount: int) -> Resource:
    identifier = new_id("pi")
    first = invoice["billing_reason"] == "subscription_create"
    return {
        "object": "payment_intent",
        "id": identifier,
        **dict.fromkeys(_NULL),
        "amount": amount,
        "amount_capturable": 0,
        "amount_received": 0,
        "capture_method": "automatic",
        "client_secret": f"{identifier}_{new_id('secret')}",
        "confirmation_method": "automatic",
        "created": account.now,
        "currency": invoice["currency"],
        "customer": invoice["customer"],
        "description": "Subscription creation" if first else "Subscription update",
        "livemode": False,
        "metadata": {},
        "payment_method_options": {},
        "payment_method_types": ["card"],
        "setup_future_usage": "off_session",
        "status": "requires_payment_method",
        "_invoice": invoice["id"],
    }
