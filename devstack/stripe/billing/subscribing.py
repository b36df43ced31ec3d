"""The beginning of a subscription."""

from typing import Any

from devstack.stripe.billing.blank_subscription import blank_subscription
from devstack.stripe.billing.collecting import collect, default_card
from devstack.stripe.billing.invoicing import draft, finalize
from devstack.stripe.billing.items import agree, new_item
from devstack.stripe.billing.lines import service_line
from devstack.stripe.billing.payments import default_intent
from devstack.stripe.billing.periods import boundary
from devstack.stripe.state.account import Account
from devstack.stripe.state.things import Thing, new_id, public
from devstack.stripe.wire.refusals import CardRefused, Invalid

_ENDED = ("canceled", "incomplete_expired")


def begin(account: Account, customer: Thing, params: dict[str, Any]) -> Thing:
    """Create the subscription with its first invoice, and collect it as `payment_behavior` says."""
    subscription = _new(account, customer, params)
    _one_currency(account, customer, subscription["currency"])
    behavior = params.get("payment_behavior", "allow_incomplete")
    due = sum(item["price"]["unit_amount"] * item["quantity"] for item in subscription["items"]["data"])
    if (
        due
        and behavior != "default_incomplete"
        and default_card(account, customer["id"], subscription) is None
    ):
        raise Invalid(
            "This customer has no attached payment source or default payment method. Please consider adding a "
            "default payment method.",
            code="resource_missing",
        )
    account.tell("customer.subscription.created", account.add(subscription))
    with account.telling("customer.updated", customer):
        customer["currency"] = subscription["currency"]
    invoice = first_invoice(account, customer, subscription)
    finalize(account, invoice)
    if default_intent(account, invoice) is None or behavior != "default_incomplete":
        status = collect(account, invoice, off_session=params.get("off_session", False))
        if behavior == "error_if_incomplete" and status != "succeeded":
            raise _unpaid(default_intent(account, invoice) or {})
    return subscription


def first_invoice(account: Account, customer: Thing, subscription: Thing) -> Thing:
    """Draft the invoice of the first period."""
    items = subscription["items"]["data"]
    lines = [
        service_line(account, subscription, item, (item["current_period_start"], item["current_period_end"]))
        for item in items
    ]
    return draft(
        account,
        customer,
        reason="subscription_create",
        lines=lines,
        currency=subscription["currency"],
        period=(account.now, account.now),
        subscription=subscription,
    )


def _new(account: Account, customer: Thing, params: dict[str, Any]) -> Thing:
    identifier, anchor = new_id("sub"), account.now
    items = [
        new_item(account, identifier, wanted, (anchor, anchor), f"items[{number}]")
        for number, wanted in enumerate(params["items"])
    ]
    if not items or not items[0]["price"]["recurring"]:
        raise Invalid("Subscriptions need at least one recurring price.", param="items")
    price = items[0]["price"]
    agree(items, price["currency"], price["recurring"])
    end = boundary(anchor, price["recurring"]["interval"], price["recurring"]["interval_count"], 1)
    for item in items:
        item.update(current_period_end=end, billed_until=end)
    subscription = blank_subscription(identifier, customer["id"], price["currency"], items, anchor)
    subscription["default_payment_method"] = params.get("default_payment_method")
    subscription["description"] = params.get("description")
    subscription["metadata"] = {name: text for name, text in (params.get("metadata") or {}).items() if text}
    subscription["payment_settings"] |= params.get("payment_settings", {})
    subscription["billing_mode"] = _billing_mode(params.get("billing_mode", {"type": "flexible"}))
    if params.get("cancel_at_period_end"):
        subscription.update(cancel_at_period_end=True, cancel_at=end, canceled_at=anchor)
        subscription["cancellation_details"]["reason"] = "cancellation_requested"
    return subscription


def _billing_mode(wanted: Thing) -> Thing:
    if wanted["type"] == "classic":
        return {"flexible": None, "type": "classic"}
    return {"flexible": {"proration_discounts": "included"}, "type": "flexible"}


def _one_currency(account: Account, customer: Thing, currency: str) -> None:
    for other in account.store.all("subscription"):
        if other["customer"] != customer["id"] or other["status"] in _ENDED or other["currency"] == currency:
            continue
        raise Invalid(
            "You cannot combine currencies on a single customer. This customer has an active subscription, "
            f"subscription schedule, discount, quote, or invoice item with currency {other['currency']}",
            param="currency",
        )


def _unpaid(intent: Thing) -> CardRefused:
    if intent["status"] == "requires_action":
        message = "Payment for this subscription requires additional user action before it can be completed."
        error: Thing = {"code": "subscription_payment_intent_requires_action", "message": message}
        return CardRefused(error | {"payment_intent": public(intent)})
    return CardRefused({**intent["last_payment_error"], "payment_intent": public(intent)})
