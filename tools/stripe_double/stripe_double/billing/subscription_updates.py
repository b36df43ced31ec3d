"""Updates of a subscription, with prorations and invoices if its price changes."""

from typing import Any

from stripe_double.account import Account, find_customer_card
from stripe_double.billing.collection import collect_invoice
from stripe_double.billing.discounts import apply_discounts
from stripe_double.billing.invoice_lines import period_lines, proration_lines
from stripe_double.billing.invoicing import create_invoice, finalize_invoice, new_draft
from stripe_double.billing.renewals import reset_anchor
from stripe_double.billing.subscription_items import updated_items
from stripe_double.billing.taxes import require_location
from stripe_double.errors import InvalidRequest
from stripe_double.events import emit_changes
from stripe_double.store import Resource, apply_fields

_PLAIN = ("collection_method", "days_until_due", "default_payment_method", "description", "metadata")
_ALLOWED = {
    "canceled": {"metadata", "cancellation_details"},
    "incomplete_expired": {"metadata"},
    "incomplete": {"metadata", "cancellation_details", "default_payment_method", "payment_settings"},
}


def update_subscription(account: Account, subscription: Resource, params: dict[str, Any]) -> None:
    """Apply the update if the subscription's status allows it."""
    allowed = _ALLOWED.get(subscription["status"])
    if allowed is not None and params.keys() - allowed - {"expand"}:
        names = " and ".join(sorted(allowed))
        raise InvalidRequest(f"A subscription that is {subscription['status']} can only update its {names}.")
    if "default_payment_method" in params:
        card, customer = params["default_payment_method"], subscription["customer"]
        find_customer_card(account, card, customer, "default_payment_method")
    with emit_changes(account, "customer.subscription.updated", subscription):
        apply_fields(subscription, params, _PLAIN)
        subscription["payment_settings"] |= params.get("payment_settings", {})
        subscription["cancellation_details"] |= params.get("cancellation_details", {})
        if params.get("automatic_tax", {}).get("enabled"):
            require_location(account.store.get("customer", subscription["customer"]) or {})
        subscription["automatic_tax"] |= params.get("automatic_tax", {})
        if "discounts" in params:
            apply_discounts(account, subscription, params["discounts"])
        if "pause_collection" in params:
            pause = params["pause_collection"]
            subscription["pause_collection"] = pause and {"resumes_at": None, **pause}
        _require_unmanaged(subscription, params)
        if "cancel_at" in params:
            _cancel_at(account, subscription, params)
        if "cancel_at_period_end" in params:
            _cancel_at_period_end(account, subscription, cancel=params["cancel_at_period_end"])
        _change_items(account, subscription, params)
        if params.get("billing_cycle_anchor", {}).get("type") == "now":
            reset_anchor(account, subscription)
            _invoice_now(account, subscription, period_lines(account, subscription), params)


def _cancel_at(account: Account, subscription: Resource, params: dict[str, Any]) -> None:
    """Set or unset `cancel_at`, as Stripe's portal does; nothing is prorated."""
    if "cancel_at_period_end" in params:
        raise InvalidRequest("You may only specify one of these parameters: cancel_at, cancel_at_period_end.")
    cancel_at = params["cancel_at"]
    if cancel_at is not None and cancel_at <= account.now:
        raise InvalidRequest(
            "The subscription's `cancel_at` timestamp must be in the future.", param="cancel_at"
        )
    _cancel_at_period_end(account, subscription, cancel=cancel_at is not None)
    subscription.update(cancel_at_period_end=False, cancel_at=cancel_at)


def _require_unmanaged(subscription: Resource, params: dict[str, Any]) -> None:
    if subscription["schedule"] and {"cancel_at", "cancel_at_period_end"} & params.keys():
        raise InvalidRequest(
            f"The subscription is managed by the subscription schedule `{subscription['schedule']}`, and updating any "
            "cancelation behavior directly is not allowed. Please update the schedule instead."
        )


def _cancel_at_period_end(account: Account, subscription: Resource, *, cancel: bool) -> None:
    end = subscription["items"]["data"][0]["current_period_end"]
    subscription["cancel_at_period_end"] = cancel
    subscription["cancel_at"] = end if cancel else None
    subscription["canceled_at"] = account.now if cancel else None
    subscription["cancellation_details"]["reason"] = "cancellation_requested" if cancel else None


def _change_items(account: Account, subscription: Resource, params: dict[str, Any]) -> None:
    if "items" not in params:
        return
    before = [dict(item) for item in subscription["items"]["data"]]
    subscription["items"]["data"] = updated_items(account, subscription, params["items"])
    proration = params.get("proration_behavior", "create_prorations")
    if proration == "none":
        return
    subscription["_pending"].extend(proration_lines(account.now, subscription, before))
    if proration == "always_invoice" and subscription["_pending"]:
        _invoice_now(account, subscription, [], params)


def _invoice_now(
    account: Account, subscription: Resource, lines: list[Resource], params: dict[str, Any]
) -> None:
    pending, subscription["_pending"] = subscription["_pending"], []
    invoice = create_invoice(
        account,
        new_draft(
            account,
            account.store.get("customer", subscription["customer"]) or {},
            reason="subscription_update",
            lines=[*pending, *lines],
            currency=subscription["currency"],
            period=(account.now, account.now),
            subscription=subscription,
        ),
    )
    finalize_invoice(account, invoice)
    collect_invoice(account, invoice, off_session=params.get("off_session", False))
