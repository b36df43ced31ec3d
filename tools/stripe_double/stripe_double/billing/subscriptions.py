"""Subscriptions, collected automatically: the routes."""

from typing import Any

from stripe_double.account import Account, find, find_customer_card, find_param
from stripe_double.billing.collection import ENDED_STATUSES, cancel_subscription
from stripe_double.billing.subscription_creation import create_subscription
from stripe_double.billing.subscription_updates import update_subscription
from stripe_double.errors import InvalidRequest, ResourceMissing
from stripe_double.parameters import (
    CURSORS,
    PAGE,
    Array,
    Boolean,
    Enum,
    Hash,
    Integer,
    Metadata,
    Parameter,
    String,
    ValueOrHash,
    takes,
)
from stripe_double.resources.prices import PRICE_DATA
from stripe_double.routing import Route, paginate, retrieve_route
from stripe_double.store import Resource

_PATH = "/v1/subscriptions"
_ITEMS_PATH = "/v1/subscription_items"
_STATUSES = (
    "active", "all", "canceled", "ended", "incomplete", "incomplete_expired", "past_due", "paused",
    "trialing", "unpaid",
)  # fmt: skip
_FEEDBACK = (
    "customer_service", "low_quality", "missing_features", "other", "switched_service", "too_complex",
    "too_expensive", "unused",
)  # fmt: skip
_ITEM: dict[str, Parameter] = {
    "metadata": Metadata(),
    "price": String(),
    "price_data": PRICE_DATA,
    "quantity": Integer(minimum=0, maximum=999_999),
}
_CANCELLATION_DETAILS = Hash({"comment": String(can_unset=True), "feedback": Enum(_FEEDBACK)})
_FIELDS: dict[str, Parameter] = {
    "automatic_tax": Hash({"enabled": Boolean()}, required=("enabled",)),
    "cancel_at_period_end": Boolean(),
    "collection_method": Enum(("charge_automatically", "send_invoice")),
    "days_until_due": Integer(minimum=0, maximum=365),
    "default_payment_method": String(),
    "description": String(500, can_unset=True),
    "discounts": Array(Hash({"coupon": String()}, required=("coupon",))),
    "metadata": Metadata(),
    "off_session": Boolean(),
    "payment_behavior": Enum(("allow_incomplete", "default_incomplete", "error_if_incomplete")),
    "payment_settings": Hash(
        {
            "payment_method_types": Array(Enum(("card",))),
            "save_default_payment_method": Enum(("off", "on_subscription")),
        }
    ),
    "proration_behavior": Enum(("always_invoice", "create_prorations", "none")),
}


def create(account: Account, params: dict[str, Any]) -> Resource:
    """Create a subscription."""
    customer = find_param(account, "customer", params["customer"], "customer")
    if "default_payment_method" in params:
        card = params["default_payment_method"]
        find_customer_card(account, card, customer["id"], "default_payment_method")
    return create_subscription(account, customer, params)


def list_all(account: Account, params: dict[str, Any]) -> Resource:
    """Return a page of subscriptions; canceled ones only if `status` includes them."""
    subscriptions = [
        subscription
        for subscription in account.store.all("subscription")
        if _has_status(subscription, params.get("status"))
        and params.get("customer") in (None, subscription["customer"])
        and params.get("price") in (None, *(item["price"]["id"] for item in subscription["items"]["data"]))
    ]
    return paginate(subscriptions, params, _PATH)


def update(account: Account, params: dict[str, Any], identifier: str) -> Resource:
    """Change a subscription."""
    subscription = find(account, "subscription", identifier)
    update_subscription(account, subscription, params)
    return subscription


def cancel(account: Account, params: dict[str, Any], identifier: str) -> Resource:
    """End a subscription now."""
    subscription = find(account, "subscription", identifier)
    if subscription["status"] in ENDED_STATUSES:
        raise ResourceMissing("subscription", identifier)
    if params.get("prorate") or params.get("invoice_now"):
        message = "This account neither prorates nor invoices a cancellation."
        raise InvalidRequest(message, param="prorate")
    details = params.get("cancellation_details")
    cancel_subscription(account, identifier, reason="cancellation_requested", details=details)
    return subscription


def list_items(account: Account, params: dict[str, Any]) -> Resource:
    """Return a page of a subscription's items."""
    subscription = find_param(account, "subscription", params["subscription"], "subscription")
    return paginate(subscription["items"]["data"][::-1], params, _ITEMS_PATH)


def _has_status(subscription: Resource, status: str | None) -> bool:
    if status is None:
        return bool(subscription["status"] != "canceled")
    if status == "ended":
        return subscription["status"] in ENDED_STATUSES
    return status in ("all", subscription["status"])


_CREATE = takes(
    "customer",
    "items",
    **_FIELDS,
    billing_mode=Hash({"type": Enum(("flexible",))}, required=("type",)),
    customer=String(),
    items=Array(Hash(_ITEM), max_items=20),
)
_UPDATE = takes(
    **_FIELDS,
    cancel_at=Integer(minimum=1, can_unset=True),
    billing_cycle_anchor=Hash({"type": Enum(("now", "unchanged"))}, required=("type",)),
    cancellation_details=_CANCELLATION_DETAILS,
    pause_collection=ValueOrHash(
        String(can_unset=True),
        Hash(
            {
                "behavior": Enum(("keep_as_draft", "mark_uncollectible", "void")),
                "resumes_at": Integer(minimum=1),
            },
            required=("behavior",),
        ),
    ),
    items=Array(Hash({**_ITEM, "id": String(), "deleted": Boolean()}), max_items=20),
)
_LIST = takes(**PAGE, customer=String(), price=String(), status=Enum(_STATUSES))
_CANCEL = takes(cancellation_details=_CANCELLATION_DETAILS, invoice_now=Boolean(), prorate=Boolean())
ROUTES = (
    Route("POST", _PATH, create, _CREATE),
    Route("GET", _PATH, list_all, _LIST),
    retrieve_route(_PATH, "subscription"),
    Route("POST", f"{_PATH}/{{id}}", update, _UPDATE),
    Route("DELETE", f"{_PATH}/{{id}}", cancel, _CANCEL),
    Route("GET", _ITEMS_PATH, list_items, takes("subscription", **CURSORS, subscription=String())),
)
