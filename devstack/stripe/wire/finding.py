"""Looking things up for a request, with Stripe's words where they are missing."""

from devstack.stripe.state.account import Account
from devstack.stripe.state.things import Thing
from devstack.stripe.wire.refusals import Invalid, NotFound


def find(account: Account, kind: str, identifier: str, noun: str | None = None) -> Thing:
    """Return the thing that the path names; 404 where there is none."""
    thing = account.store.get(kind, identifier)
    if thing is None:
        raise NotFound(noun or kind.replace("_", " "), identifier)
    return thing


def named(account: Account, kind: str, identifier: str, param: str, noun: str | None = None) -> Thing:
    """Return the thing that a parameter names; 400 where there is none."""
    thing = account.store.get(kind, identifier)
    if thing is None or thing.get("deleted"):
        raise NotFound(noun or kind.replace("_", " "), identifier, param=param, status=400)
    return thing


def owned_card(account: Account, identifier: str, customer: str, param: str) -> Thing:
    """Return a payment method that is attached to the customer."""
    method = named(account, "payment_method", identifier, param, noun="PaymentMethod")
    if method["customer"] != customer:
        raise Invalid(
            f"The customer does not have a payment method with the ID {identifier}. The payment method must be "
            "attached to the customer.",
            code="resource_missing",
            param=param,
        )
    return method


def merge_metadata(thing: Thing, changes: dict[str, str] | None) -> None:
    """Change the named metadata; an empty text takes a name away, None all of them."""
    if changes is None:
        thing["metadata"] = {}
        return
    merged = {**thing["metadata"], **changes}
    thing["metadata"] = {name: value for name, value in merged.items() if value != ""}
