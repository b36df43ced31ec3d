"""Coupons, and the discounts that subscriptions and their invoices have from them."""

from typing import Any

from stripe_double.account import Account, find_param
from stripe_double.errors import InvalidRequest
from stripe_double.events import emit
from stripe_double.parameters import Enum, Integer, Metadata, String, takes
from stripe_double.routing import Route, list_route, retrieve_route
from stripe_double.store import Resource, new_id

_PATH = "/v1/coupons"


def create(account: Account, params: dict[str, Any]) -> Resource:
    """Create a coupon of a percentage or of an amount."""
    if ("percent_off" in params) == ("amount_off" in params):
        raise InvalidRequest("You must pass exactly one of percent_off and amount_off.", param="percent_off")
    coupon = {
        "object": "coupon",
        "id": params.get("id") or new_id("", 8)[1:],
        "amount_off": params.get("amount_off"),
        "created": account.now,
        "currency": params.get("currency"),
        "duration": params.get("duration", "once"),
        "duration_in_months": None,
        "livemode": False,
        "max_redemptions": None,
        "metadata": params.get("metadata") or {},
        "name": params.get("name"),
        "percent_off": params.get("percent_off"),
        "redeem_by": None,
        "times_redeemed": 0,
        "valid": True,
    }
    emit(account, "coupon.created", account.add(coupon))
    return coupon


def apply_discounts(account: Account, subscription: Resource, entries: list[dict[str, str]]) -> None:
    """Let the subscription have exactly these coupons' discounts from now on."""
    subscription["discounts"] = [
        account.add(
            {
                "object": "_discount",
                "id": new_id("di"),
                "coupon": find_param(account, "coupon", entry["coupon"], f"discounts[{number}][coupon]")[
                    "id"
                ],
            }
        )["id"]
        for number, entry in enumerate(entries)
    ]


def discount_lines(account: Account, subscription: Resource, lines: list[Resource]) -> None:
    """Discount the lines that can be discounted; an amount is spread over them in order."""
    for identifier in subscription["discounts"]:
        coupon = _coupon_of(account, identifier)
        left = coupon["amount_off"]
        for line in lines:
            if not line["discountable"]:
                continue
            before = line["amount"] - sum(part["amount"] for part in line["discount_amounts"])
            part = round(before * coupon["percent_off"] / 100) if left is None else min(left, before)
            left = None if left is None else left - part
            line["discount_amounts"].append({"amount": part, "discount": identifier})
            line["discounts"].append(identifier)


def forget_used_discounts(account: Account, subscription: Resource) -> None:
    """Remove the discounts that an invoice has used up."""
    subscription["discounts"] = [
        identifier
        for identifier in subscription["discounts"]
        if _coupon_of(account, identifier)["duration"] == "forever"
    ]


def total_discounts(lines: list[Resource]) -> list[Resource]:
    """Return the sum of each discount over the lines."""
    sums: dict[str, int] = {}
    for line in lines:
        for part in line["discount_amounts"]:
            sums[part["discount"]] = sums.get(part["discount"], 0) + part["amount"]
    return [{"amount": amount, "discount": identifier} for identifier, amount in sums.items()]


def _coupon_of(account: Account, discount: str) -> Resource:
    row = account.store.get("_discount", discount) or {}
    return account.store.get("coupon", row.get("coupon", "")) or {}


_CREATE = takes(
    id=String(),
    amount_off=Integer(minimum=1),
    currency=String(3),
    duration=Enum(("forever", "once")),
    metadata=Metadata(),
    name=String(40),
    percent_off=Integer(minimum=1, maximum=100),
)
ROUTES = (
    Route("POST", _PATH, create, _CREATE),
    list_route(_PATH, "coupon"),
    retrieve_route(_PATH, "coupon"),
)
