"""Controls of events outside of Stripe's API: at the dashboard, at banks, and with cards."""

from typing import Any

from stripe_double.billing import credit_notes
from stripe_double.billing.collection import (
    ENDED_STATUSES,
    apply_payment_status,
    collect_invoice,
    mark_paid,
    payment_method_for,
)
from stripe_double.billing.invoice_lines import invoice_item_line
from stripe_double.billing.invoicing import create_invoice, finalize_invoice, new_draft
from stripe_double.billing.payments import invoice_of, pay_part, settle_processing
from stripe_double.control.authentication import authenticate, find_intent
from stripe_double.control.context import Body, Context, Controls, find_in_body, required
from stripe_double.errors import InvalidRequest, ResourceMissing
from stripe_double.events import emit, emit_changes
from stripe_double.resources import balance, disputes, fraud_warnings, refunds
from stripe_double.resources.prices import parse_currency
from stripe_double.store import public

_SETTINGS = {
    "after_retries": ("cancel", "unpaid", "leave"),
    "off_session": ("action", "decline", "processing"),
    "signed_at": ("account", "real"),
}


def authenticate_intent(context: Context, body: Body) -> Any:
    """Complete the 3-D Secure challenge of a setup or payment intent; with `succeeds` false, fail it."""
    intent = find_intent(context.account, required(body, "intent"))
    if intent is None:
        raise ResourceMissing("intent", body["intent"], param="intent")
    authenticate(context.account, intent, succeeds=body.get("succeeds", True))
    return public(intent)


def settle_payment(context: Context, body: Body) -> Any:
    """End the processing of a payment: the bank pays, or declines it with `decline_code`."""
    account, intent = context.account, find_in_body(context, "payment_intent", body)
    if intent["status"] != "processing":
        raise InvalidRequest(f"This payment is {intent['status']}.")
    status = settle_processing(account, intent, decline_code=body.get("decline_code"))
    invoice = invoice_of(account, intent)
    if invoice is not None and invoice["status"] == "open":
        apply_payment_status(account, invoice, status)
    return public(intent)


def change_card(context: Context, body: Body) -> Any:
    """Decline the card's later charges with `decline_code`; None accepts them."""
    method = find_in_body(context, "payment_method", body)
    method["_card"]["changes"]["charge_decline"] = required(body, "decline_code")
    return public(method)


def change_settings(context: Context, body: Body) -> Any:
    """
    Change the account's settings.

    `after_retries` is cancel, unpaid or leave; `off_session` is action or decline for off-session charges that need
    3-D Secure, or processing, so that the bank decides about every off-session charge later (`settle_payment`), as
    banks in India do; `signed_at` is the time in webhooks' signatures: the real one, or the account's.
    """
    for name, value in body.items():
        if value not in _SETTINGS.get(name, ()):
            raise InvalidRequest(f"{name} must be one of {_SETTINGS.get(name, ())}.")
    context.account.change_settings(**body)
    return {}


def set_status(context: Context, body: Body) -> Any:
    """Set a subscription to `trialing` until the end of its period, or to `paused`."""
    subscription = find_in_body(context, "subscription", body)
    status = required(body, "status")
    if status not in ("trialing", "paused"):
        raise InvalidRequest("Only trialing and paused can be set.")
    if subscription["status"] in ENDED_STATUSES:
        raise InvalidRequest(f"This subscription is {subscription['status']}.")
    with emit_changes(context.account, "customer.subscription.updated", subscription):
        end = subscription["items"]["data"][0]["current_period_end"]
        subscription["status"] = status
        subscription.update(trial_start=context.account.now, trial_end=end if status == "trialing" else None)
    return public(subscription)


def pay_out_of_band(context: Context, body: Body) -> Any:
    """Mark an invoice as paid outside of Stripe."""
    invoice = find_in_body(context, "invoice", body)
    if invoice["status"] == "draft":
        finalize_invoice(context.account, invoice)
    if invoice["status"] != "open":
        raise InvalidRequest(f"This invoice is {invoice['status']}.")
    mark_paid(context.account, invoice, off_stripe=invoice["amount_remaining"])
    return public(invoice)


def invoice_item(context: Context, body: Body) -> Any:
    """Invoice a customer for one item outside of subscriptions, and collect it at once."""
    account, customer = context.account, find_in_body(context, "customer", body)
    currency = parse_currency(body.get("currency") or customer["currency"] or "usd", "currency")
    line = invoice_item_line(account, int(required(body, "amount")), currency, product=body.get("product"))
    period = (account.now, account.now)
    invoice = create_invoice(
        account, new_draft(account, customer, reason="manual", lines=[line], currency=currency, period=period)
    )
    finalize_invoice(account, invoice)
    collect_invoice(account, invoice, off_session=True)
    return public(invoice)


def pay_invoice_part(context: Context, body: Body) -> Any:
    """Collect a part of an open invoice by another payment; it is paid once nothing is left."""
    account, invoice = context.account, find_in_body(context, "invoice", body)
    method = account.store.get("payment_method", payment_method_for(account, invoice) or "")
    amount = int(required(body, "amount"))
    if invoice["status"] != "open" or method is None or not 0 < amount < invoice["amount_remaining"]:
        raise InvalidRequest("Only a part of an open invoice can be paid, with a card.")
    with emit_changes(account, "invoice.updated", invoice):
        pay_part(account, invoice, method, amount)
    return public(invoice)


def pay_out_balance(context: Context, _body: Body) -> Any:
    """Pay the balance of each currency to the account's bank."""
    return {"payouts": [public(payout) for payout in balance.pay_out(context.account)]}


def warn_of_fraud(context: Context, body: Body) -> Any:
    """Send an early fraud warning of the charge that paid an intent."""
    charge = refunds.find_paid_charge(context.account, body)
    return public(fraud_warnings.warn(context.account, charge))


def emit_event(context: Context, body: Body) -> Any:
    """Send an event of any type about any object, as the account's other parts do."""
    emit(context.account, required(body, "type"), required(body, "object"))
    return {}


def credit_invoice(context: Context, body: Body) -> Any:
    """Issue a credit note for an invoice, by default over the rest; `out_of_band`: the money went outside of Stripe."""
    invoice = find_in_body(context, "invoice", body)
    is_out_of_band = bool(body.get("out_of_band", False))
    note = credit_notes.create_credit_note(
        context.account, invoice, body.get("amount"), is_out_of_band=is_out_of_band
    )
    return public(note)


def void_credit_note(context: Context, body: Body) -> Any:
    """Void the credit note of a paid invoice."""
    note = find_in_body(context, "credit_note", body)
    credit_notes.void_credit_note(context.account, note)
    return public(note)


def open_dispute(context: Context, body: Body) -> Any:
    """Dispute the charge that paid an intent."""
    charge = refunds.find_paid_charge(context.account, body)
    reason, withdraw = body.get("reason", "fraudulent"), body.get("withdraw", True)
    dispute = disputes.open_dispute(
        context.account, charge, reason=reason, amount=body.get("amount"), withdraw=withdraw
    )
    return public(dispute)


def withdraw_funds(context: Context, body: Body) -> Any:
    """Withdraw the disputed amount."""
    dispute = find_in_body(context, "dispute", body)
    disputes.withdraw_funds(context.account, dispute)
    return public(dispute)


def reinstate_funds(context: Context, body: Body) -> Any:
    """Reinstate the disputed amount."""
    dispute = find_in_body(context, "dispute", body)
    disputes.reinstate_funds(context.account, dispute, body.get("amount"))
    return public(dispute)


def close_dispute(context: Context, body: Body) -> Any:
    """Close a dispute as `won` or lost; a won one reinstates the amount unless `reinstate` is false."""
    dispute = find_in_body(context, "dispute", body)
    won, reinstate = bool(required(body, "won")), body.get("reinstate", True)
    disputes.close_dispute(context.account, dispute, won=won, reinstate=reinstate)
    return public(dispute)


def create_refund(context: Context, body: Body) -> Any:
    """Refund the charge that paid an intent."""
    charge = refunds.find_paid_charge(context.account, body)
    return public(refunds.create_refund(context.account, charge, amount=body.get("amount")))


def fail_refund(context: Context, body: Body) -> Any:
    """Fail a refund after its success."""
    refund = find_in_body(context, "refund", body)
    reason = body.get("reason", "lost_or_stolen_card")
    refunds.fail_refund(context.account, refund, reason=reason)
    return public(refund)


DASHBOARD_CONTROLS: Controls = {
    ("POST", "intents/authenticate"): authenticate_intent,
    ("POST", "intents/settle"): settle_payment,
    ("POST", "cards"): change_card,
    ("POST", "settings"): change_settings,
    ("POST", "subscriptions/set_status"): set_status,
    ("POST", "invoices/pay_out_of_band"): pay_out_of_band,
    ("POST", "invoices/create"): invoice_item,
    ("POST", "invoices/pay_part"): pay_invoice_part,
    ("POST", "fraud_warnings/create"): warn_of_fraud,
    ("POST", "events/emit"): emit_event,
    ("POST", "credit_notes/create"): credit_invoice,
    ("POST", "credit_notes/void"): void_credit_note,
    ("POST", "disputes/open"): open_dispute,
    ("POST", "disputes/withdraw"): withdraw_funds,
    ("POST", "disputes/reinstate"): reinstate_funds,
    ("POST", "disputes/close"): close_dispute,
    ("POST", "payouts/create"): pay_out_balance,
    ("POST", "refunds/create"): create_refund,
    ("POST", "refunds/fail"): fail_refund,
}
