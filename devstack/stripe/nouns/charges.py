"""Charges."""

from typing import Any

from devstack.stripe.state.account import Account
from devstack.stripe.state.things import Thing
from devstack.stripe.wire.finding import find, merge_metadata
from devstack.stripe.wire.lists import page
from devstack.stripe.wire.parameters import METADATA, PAGE, takes
from devstack.stripe.wire.routes import Route
from devstack.stripe.wire.shapes import Text

_PATH = "/v1/charges"


def retrieve(account: Account, _params: dict[str, Any], identifier: str) -> Thing:
    """Return a charge."""
    return find(account, "charge", identifier)


def update(account: Account, params: dict[str, Any], identifier: str) -> Thing:
    """Change a charge's description or metadata."""
    charge = find(account, "charge", identifier)
    with account.telling("charge.updated", charge):
        if "description" in params:
            charge["description"] = params["description"]
        if "metadata" in params:
            merge_metadata(charge, params["metadata"])
    return charge


def list_all(account: Account, params: dict[str, Any]) -> Thing:
    """Return a page of charges."""
    found = account.store.all("charge")
    for name in ("customer", "payment_intent"):
        if name in params:
            found = [item for item in found if item[name] == params[name]]
    return page(found, params, _PATH)


ROUTES = (
    Route("GET", _PATH, list_all, takes(**PAGE, customer=Text(), payment_intent=Text())),
    Route("GET", f"{_PATH}/{{id}}", retrieve, takes()),
    Route("POST", f"{_PATH}/{{id}}", update, takes(description=Text(clearable=True), metadata=METADATA)),
)
