"""What people and banks do away from the API: cardholders, staff at the dashboard, issuers."""

from typing import Any

from devstack.stripe.billing.collecting import mark_paid, settle
from devstack.stripe.billing.crediting import credit
from devstack.stripe.billing.disputing import close_dispute, open_dispute, reinstate_funds, withdraw_funds
from devstack.stripe.billing.intents import authenticated
from devstack.stripe.billing.invoicing import finalize
from devstack.stripe.billing.refunding import fail_refund, refund_charge
from devstack.stripe.billing.setups import authentication_failed, succeed
from devstack.stripe.control.desk import Body, Desk, needed, wanted
from devstack.stripe.nouns.payment_intents import invoice_of
from devstack.stripe.nouns.refunds import paid_charge
from devstack.stripe.state.things import Thing, public
from devstack.stripe.wire.refusals import Invalid


def authenticate(desk: Desk, body: Body) -> Any:
    """Let the cardholder agree (or, with `succeeds` false, not) to what a setup or payment intent asks."""
    identifier, agreed = needed(body, "intent"), body.get("succeeds", True)
    kind = "setup_intent" if identifier.startswith("seti_") else "payment_intent"
    intent = wanted(desk, kind, {kind: identifier})
    if intent["status"] != "requires_action":
        raise Invalid(f"This intent asks for nothing: it is {intent['status']}.")
    if kind == "payment_intent":
        _finish_payment(desk, intent, agreed=agreed)
    elif agreed:
        succeed(desk.account, intent)
    else:
        authentication_failed(desk.account, intent)
    return public(intent)


def change_card(desk: Desk, body: Body) -> Any:
    """Let a card be refused with `decline_code` from now on (None: accepted), or ask for its holder."""
    method = wanted(desk, "payment_method", body)
    changes = method["_card"]["changes"]
    if "decline_code" in body:
        changes["refuses_charge"] = body["decline_code"]
    if "asks" in body:
        changes["asks"] = body["asks"]
    return public(method)


def pay_out_of_band(desk: Desk, body: Body) -> Any:
    """Note that an invoice was paid outside of Stripe."""
    invoice = wanted(desk, "invoice", body)
    if invoice["status"] == "draft":
        finalize(desk.account, invoice)
    if invoice["status"] != "open":
        raise Invalid(f"This invoice is {invoice['status']}.")
    mark_paid(desk.account, invoice, off_stripe=invoice["amount_remaining"])
    return public(invoice)


def credit_invoice(desk: Desk, body: Body) -> Any:
    """Write a credit note for an invoice, over all that is left unless an amount is given."""
    return public(credit(desk.account, wanted(desk, "invoice", body), body.get("amount")))


def dispute_open(desk: Desk, body: Body) -> Any:
    """Dispute a charge, named by itself or by its payment intent."""
    charge = paid_charge(desk.account, body)
    reason, withdraw = body.get("reason", "fraudulent"), body.get("withdraw", True)
    dispute = open_dispute(desk.account, charge, reason=reason, amount=body.get("amount"), withdraw=withdraw)
    return public(dispute)


def dispute_withdraw(desk: Desk, body: Body) -> Any:
    """Take the disputed money."""
    dispute = wanted(desk, "dispute", body)
    withdraw_funds(desk.account, dispute)
    return public(dispute)


def dispute_reinstate(desk: Desk, body: Body) -> Any:
    """Give the disputed money back."""
    dispute = wanted(desk, "dispute", body)
    reinstate_funds(desk.account, dispute)
    return public(dispute)


def dispute_close(desk: Desk, body: Body) -> Any:
    """Decide a dispute: `won` or lost; a won one gives the money back unless `reinstate` is false."""
    dispute = wanted(desk, "dispute", body)
    close_dispute(desk.account, dispute, won=bool(needed(body, "won")), reinstate=body.get("reinstate", True))
    return public(dispute)


def refund(desk: Desk, body: Body) -> Any:
    """Refund a charge at the dashboard."""
    charge = paid_charge(desk.account, body)
    made = refund_charge(
        desk.account, charge, amount=body.get("amount"), reason=body.get("reason"), metadata={}
    )
    return public(made)


def refund_fail(desk: Desk, body: Body) -> Any:
    """Let a refund fail after all."""
    found = wanted(desk, "refund", body)
    fail_refund(desk.account, found, reason=body.get("reason", "lost_or_stolen_card"))
    return public(found)


def change_settings(desk: Desk, body: Body) -> Any:
    """Change the dashboard: `after_retries` is cancel, unpaid or leave."""
    if body.get("after_retries") not in ("cancel", "unpaid", "leave"):
        raise Invalid("after_retries must be cancel, unpaid or leave.")
    desk.account.change_settings(after_retries=body["after_retries"])
    return {}


def _finish_payment(desk: Desk, intent: Thing, *, agreed: bool) -> None:
    status = authenticated(desk.account, intent, agreed=agreed)
    invoice = invoice_of(desk.account, intent)
    if invoice is not None:
        settle(desk.account, invoice, status)


CONTROLS = {
    ("POST", "intents/authenticate"): authenticate,
    ("POST", "cards"): change_card,
    ("POST", "invoices/pay_out_of_band"): pay_out_of_band,
    ("POST", "invoices/credit"): credit_invoice,
    ("POST", "disputes/open"): dispute_open,
    ("POST", "disputes/withdraw"): dispute_withdraw,
    ("POST", "disputes/reinstate"): dispute_reinstate,
    ("POST", "disputes/close"): dispute_close,
    ("POST", "refunds/create"): refund,
    ("POST", "refunds/fail"): refund_fail,
    ("POST", "settings"): change_settings,
}
