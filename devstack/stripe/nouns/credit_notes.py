"""Credit notes, to be read; the control `invoices/credit` writes them."""

from typing import Any

from devstack.stripe.state.account import Account
from devstack.stripe.state.things import Thing
from devstack.stripe.wire.finding import find
from devstack.stripe.wire.lists import page
from devstack.stripe.wire.parameters import PAGE, takes
from devstack.stripe.wire.routes import Route
from devstack.stripe.wire.shapes import Text

_PATH = "/v1/credit_notes"


def retrieve(account: Account, _params: dict[str, Any], identifier: str) -> Thing:
    """Return a credit note."""
    return find(account, "credit_note", identifier)


def list_all(account: Account, params: dict[str, Any]) -> Thing:
    """Return a page of credit notes."""
    found = account.store.all("credit_note")
    for name in ("customer", "invoice"):
        if name in params:
            found = [item for item in found if item[name] == params[name]]
    return page(found, params, _PATH)


ROUTES = (
    Route("GET", _PATH, list_all, takes(**PAGE, customer=Text(), invoice=Text())),
    Route("GET", f"{_PATH}/{{id}}", retrieve, takes()),
)
