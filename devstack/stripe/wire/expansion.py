"""What a reader sees of a thing: the names that `expand` asks for filled in, the inner names left out."""

from collections.abc import Callable
from typing import Any

from devstack.stripe.state.account import Account
from devstack.stripe.state.things import Thing, public
from devstack.stripe.wire.lists import whole_list
from devstack.stripe.wire.refusals import Invalid

_KINDS = {
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
_PLAIN = {("charge", "payment_method"), ("line_item", "invoice"), ("subscription_item", "subscription")}
_DEEPEST = 4


def _of_invoice(kind: str) -> Callable[[Account, Thing], Thing]:
    def included(account: Account, thing: Thing) -> Thing:
        found = [item for item in account.store.all(kind) if item["invoice"] == thing["id"]]
        return whole_list([public(item) for item in found], f"/v1/{kind}s?invoice={thing['id']}")

    return included


def _confirmation_secret(account: Account, thing: Thing) -> Thing | None:
    for payment in account.store.all("invoice_payment"):
        if payment["invoice"] == thing["id"] and payment["is_default"]:
            intent = account.store.get("payment_intent", payment["payment"]["payment_intent"])
            return intent and {"client_secret": intent["client_secret"], "type": "payment_intent"}
    return None


def _subscriptions(account: Account, thing: Thing) -> Thing:
    alive = [
        public(item)
        for item in account.store.all("subscription")
        if item["customer"] == thing["id"] and item["status"] not in ("canceled", "incomplete_expired")
    ]
    return whole_list(alive, f"/v1/customers/{thing['id']}/subscriptions")


def _refunds(account: Account, thing: Thing) -> Thing:
    found = [public(item) for item in account.store.all("refund") if item["charge"] == thing["id"]]
    return whole_list(found, f"/v1/charges/{thing['id']}/refunds")


_INCLUDED: dict[tuple[str, str], Callable[[Account, Thing], Any]] = {
    ("invoice", "payments"): _of_invoice("invoice_payment"),
    ("invoice", "confirmation_secret"): _confirmation_secret,
    ("customer", "subscriptions"): _subscriptions,
    ("charge", "refunds"): _refunds,
}


def render(account: Account, thing: Thing, expand: list[str]) -> Thing:
    """Return what the outside sees of the thing or list."""
    shown: Thing = public(thing)
    for path in expand:
        steps = path.split(".")
        if len(steps) - (steps[0] == "data") > _DEEPEST:
            raise Invalid(
                f"You cannot expand more than {_DEEPEST} levels of a property ({path}).", param="expand"
            )
        _expand(account, shown, steps, path)
    return shown


def _expand(account: Account, node: Any, steps: list[str], path: str) -> None:
    if not steps or node is None:
        return
    if isinstance(node, list):
        for item in node:
            _expand(account, item, steps, path)
        return
    head, rest = steps[0], steps[1:]
    if not isinstance(node, dict):
        raise Invalid(f"This property cannot be expanded ({path}).", param="expand")
    kind = str(node.get("object", ""))
    if (kind, head) in _INCLUDED and head not in node:
        node[head] = _INCLUDED[kind, head](account, node)
    elif head not in node or (kind, head) in _PLAIN:
        raise Invalid(f"This property cannot be expanded ({head}).", param="expand")
    elif isinstance(node[head], str):
        node[head] = _referenced(account, head, node[head], path)
    _expand(account, node[head], rest, path)


def _referenced(account: Account, field: str, identifier: str, path: str) -> Thing:
    thing = account.store.get(_KINDS.get(field, ""), identifier)
    if thing is None:
        raise Invalid(f"This property cannot be expanded ({path}).", param="expand")
    shown: Thing = public(thing)
    return shown
