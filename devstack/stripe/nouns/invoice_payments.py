"""The payments of invoices: the way from a payment intent back to its invoice."""

from typing import Any

from devstack.stripe.state.account import Account
from devstack.stripe.state.things import Thing
from devstack.stripe.wire.finding import find
from devstack.stripe.wire.lists import page
from devstack.stripe.wire.parameters import PAGE, takes
from devstack.stripe.wire.routes import Route
from devstack.stripe.wire.shapes import Choice, Hash, Text

_PATH = "/v1/invoice_payments"
_PAYMENT = Hash({"type": Choice(("payment_intent",)), "payment_intent": Text()}, required=("type",))
_STATUS = Choice(("canceled", "open", "paid"))


def retrieve(account: Account, _params: dict[str, Any], identifier: str) -> Thing:
    """Return an invoice payment."""
    return find(account, "invoice_payment", identifier)


def list_all(account: Account, params: dict[str, Any]) -> Thing:
    """Return a page of invoice payments."""
    found = account.store.all("invoice_payment")
    for name in ("invoice", "status"):
        if name in params:
            found = [item for item in found if item[name] == params[name]]
    intent = params.get("payment", {}).get("payment_intent")
    if intent is not None:
        found = [item for item in found if item["payment"]["payment_intent"] == intent]
    return page(found, params, _PATH)


ROUTES = (
    Route("GET", _PATH, list_all, takes(**PAGE, invoice=Text(), payment=_PAYMENT, status=_STATUS)),
    Route("GET", f"{_PATH}/{{id}}", retrieve, takes()),
)
