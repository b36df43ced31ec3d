"""How the network between the double and an endpoint misbehaves."""

from typing import Any, Literal

from devstack.stripe.state.account import Account
from devstack.stripe.state.things import Thing, new_id

Action = Literal["corrupt", "delay", "drop", "duplicate", "hold"]


def add_rule(
    account: Account, action: Action, *, types: list[str] | None, count: int | None, **options: Any
) -> Thing:
    """Misbehave with the next `count` deliveries of these types; None means all of them."""
    rule = {"object": "_rule", "id": new_id("rule"), "action": action, "types": types, "left": count}
    return account.add({**rule, **options})


def forget_rules(account: Account, action: Action | None = None) -> None:
    """Behave again."""
    for rule in account.store.all("_rule"):
        if action in (None, rule["action"]):
            account.store.remove("_rule", rule["id"])


def use_rule(account: Account, action: Action, type: str) -> Thing | None:
    """Return the rule for an event of this type and count its use; None where there is none."""
    for found in account.store.all("_rule"):
        if found["action"] != action or (found["types"] is not None and type not in found["types"]):
            continue
        rule = account.store.get("_rule", found["id"]) or found
        if rule["left"] is not None:
            rule["left"] -= 1
            if rule["left"] <= 0:
                account.store.remove("_rule", rule["id"])
        return rule
    return None
