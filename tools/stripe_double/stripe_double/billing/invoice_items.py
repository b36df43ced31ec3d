"""Invoice items: lines of a one-off draft, or of the next invoice of a subscription."""

from typing import Any

from stripe_double.account import Account, find_param
from stripe_double.billing.collection import ENDED_STATUSES
from stripe_double.billing.invoice_lines import invoice_item_line
from stripe_double.billing.invoicing import add_line
from stripe_double.errors import InvalidRequest
from stripe_double.events import emit
from stripe_double.parameters import Enum, Hash, Integer, String, takes
from stripe_double.resources.prices import parse_currency
from stripe_double.routing import Route
from stripe_double.store import Resource

_PATH = "/v1/invoiceitems"
_NULL = ("customer_account", "parent", "test_clock")


def create(account: Account, params: dict[str, Any]) -> Resource:
    """
    Create an item of a draft invoice, or one that waits for a subscription's next invoice.

    That is the subscription of the parameter, or the customer's first one.
    """
    customer = find_param(account, "customer", params["customer"], "customer")
    price = params.get("price_data")
    currency = parse_currency((price or params).get("currency", "usd"), "currency")
    amount = price["unit_amount"] if price else params.get("amount", 0)
    line = invoice_item_line(account, amount, currency, product=price["product"] if price else None)
    line["description"] = params.get("description") or line["description"]
    item: Resource = {
        "object": "invoiceitem",
        "id": line["parent"]["invoice_item_details"]["invoice_item"],
        **dict.fromkeys(_NULL),
        "amount": amount,
        "currency": currency,
        "customer": customer["id"],
        "date": account.now,
        "description": line["description"],
        "discountable": True,
        "discounts": [],
        "invoice": params.get("invoice"),
        "livemode": False,
        "metadata": {},
        "net_amount": amount,
        "period": line["period"],
        "pricing": line["pricing"],
        "proration": False,
        "quantity": 1,
        "quantity_decimal": "1",
        "tax_rates": [],
    }
    item["_tax_behavior"] = (price or {}).get("tax_behavior", "unspecified")
    account.add(item)
    if "invoice" in params:
        draft = find_param(account, "invoice", params["invoice"], "invoice")
        rows = account.store.all("invoiceitem")
        behaviours = {row["id"]: row["_tax_behavior"] for row in rows if row["invoice"] == draft["id"]}
        add_line(account, draft, line, behaviours=behaviours)
    else:
        _subscription(account, customer["id"], params)["_pending"].append(line)
    emit(account, "invoiceitem.created", item)
    return item


def _subscription(account: Account, customer: str, params: dict[str, Any]) -> Resource:
    if "subscription" in params:
        return find_param(account, "subscription", params["subscription"], "subscription")
    for row in account.store.all("subscription"):
        if row["customer"] == customer and row["status"] not in ENDED_STATUSES:
            return account.store.get("subscription", row["id"]) or row
    raise InvalidRequest("This double bills invoice items with a subscription alone.", param="customer")


_PRICE = Hash(
    {
        "currency": String(3),
        "product": String(),
        "tax_behavior": Enum(("exclusive", "inclusive", "unspecified")),
        "unit_amount": Integer(),
    },
    required=("currency", "product", "unit_amount"),
)
ROUTES = (
    Route(
        "POST",
        _PATH,
        create,
        takes(
            "customer",
            amount=Integer(),
            currency=String(3),
            customer=String(),
            description=String(),
            invoice=String(),
            price_data=_PRICE,
            subscription=String(),
        ),
    ),
)
