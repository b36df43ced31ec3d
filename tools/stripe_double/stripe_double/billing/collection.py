"""Collecting open invoices, with retries, and the effect on their subscriptions."""

from stripe_double.account import Account
from stripe_double.billing.invoicing import void_invoice
from stripe_double.billing.payments import (
    attempt_payment,
    cancel_payment,
    is_processing,
    mark_payment_paid,
    payment_intent_of,
)
from stripe_double.errors import InvalidRequest
from stripe_double.events import emit, emit_changes
from stripe_double.store import Resource

_DAY = 86_400
_RETRY_DAYS = (3, 5, 7)
ENDED_STATUSES = ("canceled", "incomplete_expired")


def collect_invoice(
    account: Account,
    invoice: Resource,
    *,
    off_session: bool,
    payment_method: str | None = None,
    scheduled: bool = False,
) -> str:
    """
    Try to collect an open invoice; return the status of its payment intent afterwards.

    An invoice with nothing due is paid at once. Without a card the attempt fails like a declined one. A payment that
    the bank still processes is not tried again. Only the first attempt and `scheduled` ones count for the retry
    schedule.
    """
    if is_processing(account, invoice):
        return "processing"
    intent = payment_intent_of(account, invoice)
    counted = count_attempt(invoice, scheduled=scheduled)
    if intent is None:
        mark_paid(account, invoice)
        return "succeeded"
    identifier = payment_method or payment_method_for(account, invoice)
    method = account.store.get("payment_method", identifier or "")
    status = attempt_payment(account, intent, method, off_session=off_session) if method else intent["status"]
    apply_payment_status(account, invoice, status, counted=counted)
    return status


def count_attempt(invoice: Resource, *, scheduled: bool = False) -> bool:
    """Record a payment attempt; return whether it counts for the retry schedule."""
    counted = scheduled or not invoice["attempted"]
    invoice["attempted"] = True
    invoice["attempt_count"] += counted
    return counted


def apply_payment_status(account: Account, invoice: Resource, status: str, *, counted: bool = False) -> None:
    """Update the invoice and its subscription for this status of the payment intent."""
    if status == "succeeded":
        mark_payment_paid(account, invoice, invoice["amount_remaining"])
        invoice["amount_paid"] = invoice["amount_due"]
        mark_paid(account, invoice)
    elif status != "processing":
        _mark_failed(account, invoice, needs_action=status == "requires_action", counted=counted)


def mark_paid(account: Account, invoice: Resource, *, off_stripe: int = 0) -> None:
    """Mark the invoice as paid: by card, from the balance, by credit notes, or outside of Stripe."""
    charged = invoice["amount_paid"] > 0
    if off_stripe:
        cancel_payment(account, invoice, "void_invoice")
        invoice["amount_paid_off_stripe"] = off_stripe
        invoice["amount_paid"] += off_stripe
    invoice.update(status="paid", amount_remaining=0, auto_advance=False, next_payment_attempt=None)
    invoice["status_transitions"]["paid_at"] = account.now
    emit(account, "invoice.paid", invoice)
    if charged:
        emit(account, "invoice.payment_succeeded", invoice)
    subscription = _live_subscription_of(account, invoice)
    if subscription is not None and subscription["latest_invoice"] == invoice["id"]:
        _set_status(account, subscription, "active")


def payment_method_for(account: Account, invoice: Resource) -> str | None:
    """Return the card to charge: the invoice's own, else the subscription's, else the customer's."""
    customer = invoice["customer"]
    own = _if_attached(account, invoice["default_payment_method"], customer)
    return own or default_payment_method(account, customer, subscription_of(account, invoice))


def default_payment_method(account: Account, customer: str, subscription: Resource | None) -> str | None:
    """Return the subscription's card, else the customer's; never a detached one."""
    settings = (account.store.get("customer", customer) or {}).get("invoice_settings", {})
    own = _if_attached(account, (subscription or {}).get("default_payment_method"), customer)
    return own or _if_attached(account, settings.get("default_payment_method"), customer)


def subscription_of(account: Account, invoice: Resource) -> Resource | None:
    """Return the subscription that the invoice bills."""
    details = (invoice["parent"] or {}).get("subscription_details")
    return account.store.get("subscription", details["subscription"]) if details else None


def require_one_currency(account: Account, customer: Resource, currency: str) -> None:
    """Reject another currency than that of the customer's live subscriptions."""
    for other in account.store.all("subscription"):
        if other["customer"] != customer["id"] or other["status"] in ENDED_STATUSES:
            continue
        if other["currency"] != currency:
            raise InvalidRequest(
                "You cannot combine currencies on a single customer. This customer has an active subscription, "
                f"subscription schedule, discount, quote, or invoice item with currency {other['currency']}",
                param="currency",
            )


def void_and_update_subscription(account: Account, invoice: Resource) -> None:
    """Void the invoice: this ends an incomplete subscription, and makes a past-due one active again."""
    void_invoice(account, invoice)
    subscription = _live_subscription_of(account, invoice)
    if subscription is None or subscription["latest_invoice"] != invoice["id"]:
        return
    if subscription["status"] == "incomplete":
        expire_subscription(account, subscription["id"])
    else:
        _set_status(account, subscription, "active")


def cancel_subscription(
    account: Account,
    identifier: str,
    *,
    reason: str,
    ended_at: int | None = None,
    details: Resource | None = None,
) -> None:
    """End the subscription and stop the automatic collection of its drafts and open invoices."""
    subscription = account.store.get("subscription", identifier)
    if subscription is None or subscription["status"] in ENDED_STATUSES:
        return
    was_incomplete = subscription["status"] == "incomplete"
    subscription.update(status="canceled", ended_at=ended_at or account.now)
    subscription["canceled_at"] = subscription["canceled_at"] or account.now
    subscription["cancellation_details"] |= {"reason": reason, **(details or {})}
    _stop_collecting_invoices(account, identifier, void_open=was_incomplete)
    emit(account, "customer.subscription.deleted", subscription)


def expire_subscription(account: Account, identifier: str) -> None:
    """End a subscription whose first invoice was never paid, and void that invoice."""
    subscription = account.store.get("subscription", identifier)
    if subscription is None or subscription["status"] != "incomplete":
        return
    with emit_changes(account, "customer.subscription.updated", subscription):
        subscription.update(status="incomplete_expired", ended_at=account.now)
    _stop_collecting_invoices(account, identifier, void_open=True)


def stop_collecting(account: Account, invoice: Resource) -> None:
    """Stop finalizing and collecting the invoice automatically."""
    with emit_changes(account, "invoice.updated", invoice):
        invoice.update(auto_advance=False, next_payment_attempt=None, automatically_finalizes_at=None)


def _stop_collecting_invoices(account: Account, subscription: str, *, void_open: bool) -> None:
    for row in account.store.all("invoice"):
        details = (row["parent"] or {}).get("subscription_details") or {}
        if details.get("subscription") != subscription or row["status"] not in ("draft", "open"):
            continue
        invoice = account.store.get("invoice", row["id"]) or row
        if void_open and invoice["status"] == "open" and not is_processing(account, invoice):
            void_invoice(account, invoice)
        else:
            stop_collecting(account, invoice)


def _mark_failed(account: Account, invoice: Resource, *, needs_action: bool, counted: bool) -> None:
    attempts = invoice["attempt_count"]
    retries = invoice["billing_reason"] != "subscription_create" and invoice["auto_advance"]
    if counted:
        again = retries and attempts <= len(_RETRY_DAYS)
        invoice["next_payment_attempt"] = account.now + _RETRY_DAYS[attempts - 1] * _DAY if again else None
    if needs_action:
        emit(account, "invoice.payment_action_required", invoice)
    emit(account, "invoice.payment_failed", invoice)
    last = counted and retries and invoice["next_payment_attempt"] is None
    _update_unpaid_subscription(account, invoice, last_attempt=last)


def _update_unpaid_subscription(account: Account, invoice: Resource, *, last_attempt: bool) -> None:
    subscription = _live_subscription_of(account, invoice)
    if subscription is None or subscription["status"] == "incomplete":
        return
    outcome = account.setting("after_retries", "cancel") if last_attempt else "leave"
    if outcome == "cancel":
        cancel_subscription(account, subscription["id"], reason="payment_failed")
    elif subscription["status"] != "unpaid":
        _set_status(account, subscription, "unpaid" if outcome == "unpaid" else "past_due")


def _live_subscription_of(account: Account, invoice: Resource) -> Resource | None:
    subscription = subscription_of(account, invoice)
    return None if subscription is None or subscription["status"] in ENDED_STATUSES else subscription


def _set_status(account: Account, subscription: Resource, status: str) -> None:
    with emit_changes(account, "customer.subscription.updated", subscription):
        subscription["status"] = status


def _if_attached(account: Account, payment_method: str | None, customer: str) -> str | None:
    method = account.store.get("payment_method", payment_method or "")
    return payment_method if method is not None and method["customer"] == customer else None
