"""Subscriptions, collected automatically."""

from typing import Any

from devstack.stripe.billing.changing import change
from devstack.stripe.billing.ending import cancel_now
from devstack.stripe.billing.subscribing import begin
from devstack.stripe.nouns.prices import PRICE_DATA
from devstack.stripe.state.account import Account
from devstack.stripe.state.things import Thing
from devstack.stripe.wire.finding import find, named, owned_card
from devstack.stripe.wire.lists import page
from devstack.stripe.wire.parameters import METADATA, PAGE, takes
from devstack.stripe.wire.refusals import Invalid, NotFound
from devstack.stripe.wire.routes import Route
from devstack.stripe.wire.shapes import Choice, Flag, Hash, Integer, Several, Shape, Text

_PATH = "/v1/subscriptions"
_ENDED = ("canceled", "incomplete_expired")
_STATUSES = (
    "active", "all", "canceled", "ended", "incomplete", "incomplete_expired", "past_due", "paused",
    "trialing", "unpaid",
)  # fmt: skip
_FEEDBACK = (
    "customer_service", "low_quality", "missing_features", "other", "switched_service", "too_complex",
    "too_expensive", "unused",
)  # fmt: skip
_ITEM: dict[str, Shape] = {
    "metadata": METADATA,
    "price": Text(),
    "price_data": PRICE_DATA,
    "quantity": Integer(least=0, most=999_999),
}
_CANCELLATION = Hash({"comment": Text(clearable=True), "feedback": Choice(_FEEDBACK)})
_COMMON: dict[str, Shape] = {
    "cancel_at_period_end": Flag(),
    "collection_method": Choice(("charge_automatically",)),
    "default_payment_method": Text(),
    "description": Text(500, clearable=True),
    "metadata": METADATA,
    "off_session": Flag(),
    "payment_behavior": Choice(("allow_incomplete", "default_incomplete", "error_if_incomplete")),
    "payment_settings": Hash(
        {
            "payment_method_types": Several(Choice(("card",))),
            "save_default_payment_method": Choice(("off", "on_subscription")),
        }
    ),
    "proration_behavior": Choice(("always_invoice", "create_prorations", "none")),
}


def create(account: Account, params: dict[str, Any]) -> Thing:
    """Begin a subscription."""
    customer = named(account, "customer", params["customer"], "customer")
    if "default_payment_method" in params:
        owned_card(account, params["default_payment_method"], customer["id"], "default_payment_method")
    return begin(account, customer, params)


def retrieve(account: Account, _params: dict[str, Any], identifier: str) -> Thing:
    """Return a subscription."""
    return find(account, "subscription", identifier)


def list_all(account: Account, params: dict[str, Any]) -> Thing:
    """Return a page of subscriptions; those that ended only when the status asks for them."""
    found = account.store.all("subscription")
    wanted = params.get("status")
    if wanted == "ended":
        found = [item for item in found if item["status"] in _ENDED]
    elif wanted is None:
        found = [item for item in found if item["status"] != "canceled"]
    elif wanted != "all":
        found = [item for item in found if item["status"] == wanted]
    if "customer" in params:
        found = [item for item in found if item["customer"] == params["customer"]]
    if "price" in params:
        found = [
            item
            for item in found
            if any(it["price"]["id"] == params["price"] for it in item["items"]["data"])
        ]
    return page(found, params, _PATH)


def update(account: Account, params: dict[str, Any], identifier: str) -> Thing:
    """Change a subscription."""
    subscription = find(account, "subscription", identifier)
    change(account, subscription, params)
    return subscription


def cancel(account: Account, params: dict[str, Any], identifier: str) -> Thing:
    """End a subscription now."""
    subscription = find(account, "subscription", identifier)
    if subscription["status"] in _ENDED:
        raise NotFound("subscription", identifier)
    if params.get("prorate") or params.get("invoice_now"):
        raise Invalid("This account neither prorates nor invoices a cancellation.", param="prorate")
    details = params.get("cancellation_details")
    cancel_now(account, identifier, reason="cancellation_requested", details=details)
    return subscription


_LIST = takes(**PAGE, customer=Text(), price=Text(), status=Choice(_STATUSES))
_CREATE = takes(
    "customer",
    "items",
    **_COMMON,
    billing_mode=Hash({"type": Choice(("classic", "flexible"))}, required=("type",)),
    customer=Text(),
    items=Several(Hash(_ITEM), most=20),
)
_UPDATE = takes(
    **_COMMON,
    billing_cycle_anchor=Hash({"type": Choice(("now", "unchanged"))}, required=("type",)),
    cancellation_details=_CANCELLATION,
    items=Several(Hash({**_ITEM, "id": Text(), "deleted": Flag()}), most=20),
)
_CANCEL = takes(cancellation_details=_CANCELLATION, invoice_now=Flag(), prorate=Flag())
ROUTES = (
    Route("POST", _PATH, create, _CREATE),
    Route("GET", _PATH, list_all, _LIST),
    Route("GET", f"{_PATH}/{{id}}", retrieve, takes()),
    Route("POST", f"{_PATH}/{{id}}", update, _UPDATE),
    Route("DELETE", f"{_PATH}/{{id}}", cancel, _CANCEL),
)
