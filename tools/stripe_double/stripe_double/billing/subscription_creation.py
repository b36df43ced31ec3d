"""The creation of a subscription with its first invoice."""

from typing import Any

from stripe_double.account import Account
from stripe_double.billing.collection import (
    collect_invoice,
    default_payment_method,
    require_one_currency,
)
from stripe_double.billing.discounts import apply_discounts
from stripe_double.billing.invoice_lines import period_lines
from stripe_double.billing.invoicing import create_invoice, finalize_invoice, new_draft
from stripe_double.billing.payments import payment_intent_of
from stripe_double.billing.renewals import period_start
from stripe_double.billing.subscription_items import new_item, require_compatible
from stripe_double.billing.taxes import require_location
from stripe_double.errors import CardError, InvalidRequest
from stripe_double.events import emit, emit_changes
from stripe_double.store import Resource, list_object, new_id, public

_NULL = (
    "application", "application_fee_percent", "billing_cycle_anchor_config", "billing_thresholds", "cancel_at",
    "canceled_at", "customer_account", "days_until_due", "default_payment_method", "default_source", "description",
    "ended_at", "latest_invoice", "managed_payments", "next_pending_invoice_item_invoice", "on_behalf_of",
    "pause_collection",
    "pending_invoice_item_interval", "pending_setup_intent", "pending_update", "schedule", "status_details",
    "test_clock", "transfer_data", "trial_end", "trial_start",
)  # fmt: skip


def create_subscription(account: Account, customer: Resource, params: dict[str, Any]) -> Resource:
    """Create the subscription with its first invoice, and collect it according to `payment_behavior`."""
    subscription = _new_subscription(account, customer["id"], params)
    subscription["test_clock"] = customer["test_clock"]
    require_one_currency(account, customer, subscription["currency"])
    if subscription["automatic_tax"]["enabled"]:
        require_location(customer)
    behavior = params.get("payment_behavior", "allow_incomplete")
    if behavior != "default_incomplete":
        _require_payment_method(account, customer, subscription)
    apply_discounts(account, subscription, params.get("discounts", []))
    emit(account, "customer.subscription.created", account.add(subscription))
    with emit_changes(account, "customer.updated", customer):
        customer["currency"] = subscription["currency"]
    invoice = create_invoice(
        account,
        new_draft(
            account,
            customer,
            reason="subscription_create",
            lines=period_lines(account, subscription),
            currency=subscription["currency"],
            period=(account.now, account.now),
            subscription=subscription,
        ),
    )
    finalize_invoice(account, invoice)
    intent = payment_intent_of(account, invoice)
    if intent is None or behavior != "default_incomplete":
        status = collect_invoice(account, invoice, off_session=params.get("off_session", False))
        if behavior == "error_if_incomplete" and status != "succeeded":
            raise _card_error(intent or {})
    return subscription


def _require_payment_method(account: Account, customer: Resource, subscription: Resource) -> None:
    items = subscription["items"]["data"]
    amount = sum(item["price"]["unit_amount"] * item["quantity"] for item in items)
    if amount and default_payment_method(account, customer["id"], subscription) is None:
        raise InvalidRequest(
            "This customer has no attached payment source or default payment method. Please consider adding a "
            "default payment method.",
            code="resource_missing",
        )


def _card_error(intent: Resource) -> CardError:
    error = intent["last_payment_error"]
    if intent["status"] == "requires_action":
        message = "Payment for this subscription requires additional user action before it can be completed."
        error = {"code": "subscription_payment_intent_requires_action", "message": message}
    return CardError({**error, "payment_intent": public(intent)})


def _new_subscription(account: Account, customer: str, params: dict[str, Any]) -> Resource:
    identifier, now = new_id("sub"), account.now
    is_taxed = params.get("automatic_tax", {}).get("enabled", False)
    items = _new_items(account, identifier, params["items"])
    end = items[0]["current_period_end"]
    subscription: Resource = {
        "object": "subscription",
        "id": identifier,
        **dict.fromkeys(_NULL),
        "automatic_tax": {
            "disabled_reason": None,
            "enabled": is_taxed,
            "liability": {"type": "self"} if is_taxed else None,
        },
        "billing_cycle_anchor": now,
        "billing_mode": {"flexible": {"proration_discounts": "included"}, "type": "flexible"},
        "billing_schedules": [],
        "cancel_at_period_end": False,
        "cancellation_details": dict.fromkeys(("comment", "feedback", "feedback_option", "reason")),
        "collection_method": "charge_automatically",
        "created": now,
        "currency": items[0]["price"]["currency"],
        "customer": customer,
        "default_payment_method": params.get("default_payment_method"),
        "default_tax_rates": [],
        "description": params.get("description"),
        "discounts": [],
        "invoice_settings": {
            **dict.fromkeys(("account_tax_ids", "custom_fields", "description", "footer")),
            "issuer": {"type": "self"},
        },
        "items": list_object(items, f"/v1/subscription_items?subscription={identifier}"),
        "livemode": False,
        "metadata": {key: text for key, text in (params.get("metadata") or {}).items() if text},
        "payment_settings": {
            "payment_method_options": None,
            "payment_method_types": None,
            "save_default_payment_method": "off",
            **params.get("payment_settings", {}),
        },
        "start_date": now,
        "status": "incomplete",
        "trial_settings": {"end_behavior": {"missing_payment_method": "create_invoice"}},
        "_period": 0,
        "_pending": [],  # proration lines of the next invoice
    }
    if params.get("cancel_at_period_end"):
        subscription.update(cancel_at_period_end=True, cancel_at=end, canceled_at=now)
        subscription["cancellation_details"]["reason"] = "cancellation_requested"
    return subscription


def _new_items(account: Account, subscription: str, entries: list[dict[str, Any]]) -> list[Resource]:
    now = account.now
    items = [
        new_item(account, subscription, entry, (now, now), f"items[{number}]")
        for number, entry in enumerate(entries)
    ]
    if not items or not items[0]["price"]["recurring"]:
        raise InvalidRequest("Subscriptions need at least one recurring price.", param="items")
    price = items[0]["price"]
    recurring = price["recurring"]
    require_compatible(items, price["currency"], recurring)
    end = period_start(now, recurring["interval"], recurring["interval_count"], 1)
    for item in items:
        item.update(current_period_end=end, billed_until=end)
    return items
