"""The items of a subscription."""

from typing import Any

from stripe_double.account import Account, find_param
from stripe_double.billing.invoice_lines import Period, period_of
from stripe_double.errors import InvalidRequest
from stripe_double.resources.prices import create_price
from stripe_double.store import Resource, apply_fields, new_id


def new_item(
    account: Account, subscription: str, params: dict[str, Any], period: Period, param: str
) -> Resource:
    """Return an item with the given `price` or `price_data`."""
    price = _price(account, params, param)
    if price is None:
        missing = f"{param}[price]"
        message = f"Missing required param: {missing}."
        raise InvalidRequest(message, code="parameter_missing", param=missing)
    return {
        "object": "subscription_item",
        "id": new_id("si", 14),
        "billed_until": period[1],
        "billing_thresholds": None,
        "created": account.now,
        "current_period_start": period[0],
        "current_period_end": period[1],
        "discounts": [],
        "metadata": params.get("metadata") or {},
        "price": dict(price),
        "quantity": params.get("quantity", 1),
        "subscription": subscription,
        "tax_rates": [],
    }


def updated_items(account: Account, subscription: Resource, entries: list[dict[str, Any]]) -> list[Resource]:
    """
    Return the subscription's items after the update.

    An entry with an `id` changes or deletes that item; an entry without one adds an item.
    """
    items = {item["id"]: dict(item) for item in subscription["items"]["data"]}
    first = subscription["items"]["data"][0]
    for number, entry in enumerate(entries):
        param = f"items[{number}]"
        if "id" not in entry:
            item = new_item(account, subscription["id"], entry, period_of(first), param)
            items[item["id"]] = item
        elif entry["id"] not in items:
            message = (
                f"Invalid subscription item id {entry['id']}: it does not belong to {subscription['id']}."
            )
            raise InvalidRequest(message, code="resource_missing", param=f"{param}[id]")
        elif entry.get("deleted"):
            del items[entry["id"]]
        else:
            _update(account, items[entry["id"]], entry, param)
    require_compatible(list(items.values()), subscription["currency"], first["price"]["recurring"])
    return list(items.values())


def require_compatible(items: list[Resource], currency: str, recurring: Resource) -> None:
    """Reject items that cannot be billed together."""
    if not items:
        raise InvalidRequest("A subscription must have at least one active plan.", param="items")
    for number, item in enumerate(items):
        price = item["price"]
        if price["currency"] != currency:
            message = (
                f"The price specified only supports `{price['currency']}`. This doesn't match the expected "
                f"currency: `{currency}`."
            )
            raise InvalidRequest(message, param=f"items[{number}]")
        if _interval(price["recurring"]) != _interval(recurring):
            message = "The items of a subscription are billed at one interval, which does not change."
            raise InvalidRequest(message, param=f"items[{number}]")


def _interval(recurring: Resource | None) -> tuple[str, int] | None:
    return (recurring["interval"], recurring["interval_count"]) if recurring else None


def _price(account: Account, params: dict[str, Any], param: str) -> Resource | None:
    if "price" in params and "price_data" in params:
        message = f"You may only specify one of these parameters: {param}[price], {param}[price_data]."
        raise InvalidRequest(message, param=param)
    if "price_data" in params:
        return create_price(account, params["price_data"], active=False, param=f"{param}[price_data]")
    if "price" in params:
        return find_param(account, "price", params["price"], f"{param}[price]")
    return None


def _update(account: Account, item: Resource, params: dict[str, Any], param: str) -> None:
    price = _price(account, params, param)
    if price is not None:
        item.update(price=dict(price), quantity=1)  # a new price resets the quantity
    apply_fields(item, params, ("quantity", "metadata"))
