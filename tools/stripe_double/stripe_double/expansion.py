"""Rendering of resources: `expand` is applied and internal members are removed."""

from collections.abc import Callable
from typing import Any

from stripe_double.account import Account
from stripe_double.errors import InvalidRequest
from stripe_double.store import Resource, list_object, public

# The kind of resource by the name of a field with its id.
_REFERENCES = {
    "customer": "customer",
    "default_payment_method": "payment_method",
    "payment_method": "payment_method",
    "latest_invoice": "invoice",
    "invoice": "invoice",
    "subscription": "subscription",
    "payment_intent": "payment_intent",
    "latest_charge": "charge",
    "charge": "charge",
    "balance_transaction": "balance_transaction",
    "failure_balance_transaction": "balance_transaction",
    "product": "product",
    "price": "price",
}
_SOURCES = {"ch": "charge", "re": "refund", "du": "dispute", "po": "payout"}
_NOT_EXPANDABLE = {
    ("charge", "payment_method"),
    ("line_item", "invoice"),
    ("subscription_item", "subscription"),
}
_MAX_DEPTH = 4
_ENDED = ("canceled", "incomplete_expired")


def render(account: Account, resource: Resource, expand: list[str]) -> Resource:
    """Return the rendered resource or list."""
    shown: Resource = public(resource)
    for path in expand:
        names = path.split(".")
        if len(names) - (names[0] == "data") > _MAX_DEPTH:
            message = f"You cannot expand more than {_MAX_DEPTH} levels of a property ({path})."
            raise InvalidRequest(message, param="expand")
        _expand(account, shown, names, path)
    return shown


def _expand(account: Account, node: Any, names: list[str], path: str) -> None:
    if not names or node is None:
        return
    if isinstance(node, list):
        for item in node:
            _expand(account, item, names, path)
        return
    name, rest = names[0], names[1:]
    if not isinstance(node, dict):
        raise _not_expandable(path)
    kind = str(node.get("object", ""))
    if (kind, name) in _INCLUDABLE and name not in node:
        node[name] = _INCLUDABLE[kind, name](account, node)
    elif name not in node or (kind, name) in _NOT_EXPANDABLE:
        raise _not_expandable(name)
    elif isinstance(node[name], str):
        referenced = account.store.get(_kind_of(name, node[name]), node[name])
        if referenced is None:
            raise _not_expandable(path)
        node[name] = public(referenced)
    _expand(account, node[name], rest, path)


def _kind_of(name: str, identifier: str) -> str:
    """Return the kind that a field refers to; the source of a balance transaction may be of several."""
    if name == "source":
        return _SOURCES.get(identifier.split("_", 1)[0], "")
    return _REFERENCES.get(name, "")


def _not_expandable(path: str) -> InvalidRequest:
    return InvalidRequest(f"This property cannot be expanded ({path}).", param="expand")


def _payment_of(account: Account, invoice: Resource) -> Resource | None:
    """Return the default payment of an invoice."""
    stored = account.store.get("invoice", invoice["id"]) or {}
    return account.store.get("invoice_payment", stored.get("_payment", ""))


def _payments(account: Account, invoice: Resource) -> Resource:
    rows = account.store.all("invoice_payment")[::-1]
    payments = [public(row) for row in rows if row["invoice"] == invoice["id"]]
    listed = list_object(payments, f"/v1/invoice_payments?invoice={invoice['id']}")
    return dict(public({"list": listed})["list"])


def _confirmation_secret(account: Account, invoice: Resource) -> Resource | None:
    payment = _payment_of(account, invoice)
    intent = payment and account.store.get("payment_intent", payment["payment"]["payment_intent"])
    return intent and {"client_secret": intent["client_secret"], "type": "payment_intent"}


def _subscriptions(account: Account, customer: Resource) -> Resource:
    subscriptions = [
        public(item)
        for item in account.store.all("subscription")
        if item["customer"] == customer["id"] and item["status"] not in _ENDED
    ]
    return list_object(subscriptions, f"/v1/customers/{customer['id']}/subscriptions")


def _refunds(account: Account, charge: Resource) -> Resource:
    refunds = [public(item) for item in account.store.all("refund") if item["charge"] == charge["id"]]
    return list_object(refunds, f"/v1/charges/{charge['id']}/refunds")


# Members that are rendered only if expanded.
_INCLUDABLE: dict[tuple[str, str], Callable[[Account, Resource], Any]] = {
    ("invoice", "payments"): _payments,
    ("invoice", "confirmation_secret"): _confirmation_secret,
    ("customer", "subscriptions"): _subscriptions,
    ("charge", "refunds"): _refunds,
}
