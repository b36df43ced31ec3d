"""The items of a subscription."""

from typing import Any

from devstack.stripe.billing.lines import Period
from devstack.stripe.billing.pricing import make_price
from devstack.stripe.state.account import Account
from devstack.stripe.state.things import Thing, new_id
from devstack.stripe.wire.finding import merge_metadata, named
from devstack.stripe.wire.refusals import Invalid


def new_item(
    account: Account, subscription: str, wanted: dict[str, Any], period: Period, place: str
) -> Thing:
    """Return an item for the wanted price."""
    price = _wanted_price(account, wanted, place)
    if price is None:
        raise Invalid(
            f"Missing required param: {place}[price].", code="parameter_missing", param=f"{place}[price]"
        )
    return {
        "object": "subscription_item",
        "id": new_id("si", 14),
        "billed_until": period[1],
        "billing_thresholds": None,
        "created": account.now,
        "current_period_start": period[0],
        "current_period_end": period[1],
        "discounts": [],
        "metadata": wanted.get("metadata") or {},
        "price": dict(price),
        "quantity": wanted.get("quantity", 1),
        "subscription": subscription,
        "tax_rates": [],
    }


def changed_items(account: Account, subscription: Thing, wanted: list[dict[str, Any]]) -> list[Thing]:
    """
    Return the subscription's items after the change.

    An entry with an `id` changes that item, or takes it away; an entry without one adds an item.
    """
    items = {item["id"]: dict(item) for item in subscription["items"]["data"]}
    first = subscription["items"]["data"][0]
    period = (first["current_period_start"], first["current_period_end"])
    for number, entry in enumerate(wanted):
        place = f"items[{number}]"
        if "id" not in entry:
            added = new_item(account, subscription["id"], entry, period, place)
            items[added["id"]] = added
        elif entry["id"] not in items:
            message = (
                f"Invalid subscription item id {entry['id']}: it does not belong to {subscription['id']}."
            )
            raise Invalid(message, code="resource_missing", param=f"{place}[id]")
        elif entry.get("deleted"):
            del items[entry["id"]]
        else:
            _change(account, items[entry["id"]], entry, place)
    agree(list(items.values()), subscription["currency"], first["price"]["recurring"])
    return list(items.values())


def agree(items: list[Thing], currency: str, recurring: Thing) -> None:
    """Refuse items that cannot be billed together."""
    if not items:
        raise Invalid("A subscription must have at least one active plan.", param="items")
    for number, item in enumerate(items):
        price = item["price"]
        if price["currency"] != currency:
            message = (
                f"The price specified only supports `{price['currency']}`. This doesn't match the expected "
                f"currency: `{currency}`."
            )
            raise Invalid(message, param=f"items[{number}]")
        rhythm = price["recurring"]
        if not rhythm or (rhythm["interval"], rhythm["interval_count"]) != (
            recurring["interval"],
            recurring["interval_count"],
        ):
            message = "The items of a subscription are billed at one interval, which does not change."
            raise Invalid(message, param=f"items[{number}]")


def _wanted_price(account: Account, wanted: dict[str, Any], place: str) -> Thing | None:
    if "price" in wanted and "price_data" in wanted:
        raise Invalid(
            f"You may only specify one of these parameters: {place}[price], {place}[price_data].", param=place
        )
    if "price_data" in wanted:
        return make_price(account, wanted["price_data"], active=False, place=f"{place}[price_data]")
    if "price" in wanted:
        return named(account, "price", wanted["price"], f"{place}[price]")
    return None


def _change(account: Account, item: Thing, wanted: dict[str, Any], place: str) -> None:
    price = _wanted_price(account, wanted, place)
    if price is not None:
        item.update(price=dict(price), quantity=1)  # a new price starts again with one piece
    if "quantity" in wanted:
        item["quantity"] = wanted["quantity"]
    if "metadata" in wanted:
        merge_metadata(item, wanted["metadata"])
