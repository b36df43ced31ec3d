"""Getting open invoices paid, and what that means for their subscriptions."""

from devstack.stripe.billing.intents import attempt
from devstack.stripe.billing.payments import default_intent, drop_payment, settle_payment
from devstack.stripe.billing.standing import invoice_failed, invoice_paid
from devstack.stripe.state.account import Account
from devstack.stripe.state.things import Thing

_DAY = 86_400
_RETRY_DAYS = (3, 5, 7)


def collect(
    account: Account, invoice: Thing, *, off_session: bool, method: str | None = None, scheduled: bool = False
) -> str:
    """
    Try to get an open invoice paid; return the status of its intent afterwards.

    What needs no money is paid at once. Without any card the attempt fails like a refused
    one. Only the first attempt and `scheduled` ones count for the schedule of retries.
    """
    intent = default_intent(account, invoice)
    counted = note_attempt(invoice, scheduled=scheduled)
    if intent is None:
        mark_paid(account, invoice)
        return "succeeded"
    card = account.store.get("payment_method", method or card_for(account, invoice) or "")
    status = attempt(account, intent, card, off_session=off_session) if card else intent["status"]
    settle(account, invoice, status, counted=counted)
    return status


def note_attempt(invoice: Thing, *, scheduled: bool = False) -> bool:
    """Note that somebody tries to pay; say whether the try counts for the schedule of retries."""
    counted = scheduled or not invoice["attempted"]
    invoice["attempted"] = True
    invoice["attempt_count"] += counted
    return counted


def settle(account: Account, invoice: Thing, status: str, *, counted: bool = False) -> None:
    """Draw the consequences of the status that the invoice's intent has reached."""
    if status == "succeeded":
        settle_payment(account, invoice, invoice["amount_due"])
        invoice["amount_paid"] = invoice["amount_due"]
        mark_paid(account, invoice)
    else:
        _mark_failed(account, invoice, needs_action=status == "requires_action", counted=counted)


def mark_paid(account: Account, invoice: Thing, *, off_stripe: int = 0) -> None:
    """Close the invoice as paid: by card, from the balance, by credit notes, or outside of Stripe."""
    charged = invoice["amount_paid"] > 0
    if off_stripe:
        drop_payment(account, invoice, "void_invoice")
        invoice["amount_paid_off_stripe"] = invoice["amount_paid"] = off_stripe
    invoice.update(status="paid", amount_remaining=0, auto_advance=False, next_payment_attempt=None)
    invoice["status_transitions"]["paid_at"] = account.now
    account.tell("invoice.paid", invoice)
    if charged:
        account.tell("invoice.payment_succeeded", invoice)
    invoice_paid(account, invoice)


def card_for(account: Account, invoice: Thing) -> str | None:
    """Return the card that pays: the invoice's own, else the subscription's, else the customer's."""
    details = (invoice["parent"] or {}).get("subscription_details")
    subscription = account.store.get("subscription", details["subscription"]) if details else None
    own = _attached(account, invoice["default_payment_method"], invoice["customer"])
    return own or default_card(account, invoice["customer"], subscription)


def default_card(account: Account, customer: str, subscription: Thing | None) -> str | None:
    """Return the subscription's card, or else the customer's; a detached card is none."""
    settings = (account.store.get("customer", customer) or {}).get("invoice_settings", {})
    own = _attached(account, (subscription or {}).get("default_payment_method"), customer)
    return own or _attached(account, settings.get("default_payment_method"), customer)


def _attached(account: Account, card: str | None, customer: str) -> str | None:
    method = account.store.get("payment_method", card) if card else None
    return card if method is not None and method["customer"] == customer else None


def _mark_failed(account: Account, invoice: Thing, *, needs_action: bool, counted: bool) -> None:
    tries = invoice["attempt_count"]
    retried = invoice["billing_reason"] != "subscription_create" and invoice["auto_advance"]
    if counted:
        more = retried and tries <= len(_RETRY_DAYS)
        invoice["next_payment_attempt"] = account.now + _RETRY_DAYS[tries - 1] * _DAY if more else None
    if needs_action:
        account.tell("invoice.payment_action_required", invoice)
    account.tell("invoice.payment_failed", invoice)
    invoice_failed(account, invoice, last=counted and retried and invoice["next_payment_attempt"] is None)
