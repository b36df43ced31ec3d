"""Payment methods: cards only, made from Stripe's test cards."""

from typing import Any

from devstack.stripe.billing.cards import CARDS
from devstack.stripe.billing.wallet import attach_card, card_named
from devstack.stripe.state.account import Account
from devstack.stripe.state.things import Thing
from devstack.stripe.wire.finding import find, merge_metadata, named
from devstack.stripe.wire.lists import page
from devstack.stripe.wire.parameters import CURSORS, METADATA, takes
from devstack.stripe.wire.refusals import Invalid
from devstack.stripe.wire.routes import Route
from devstack.stripe.wire.shapes import Choice, Text

_PATH = "/v1/payment_methods"


def attach(account: Account, params: dict[str, Any], identifier: str) -> Thing:
    """Attach a card to a customer."""
    customer = named(account, "customer", params["customer"], "customer")
    if identifier not in CARDS:
        find(account, "payment_method", identifier, noun="PaymentMethod")
    method = card_named(account, identifier)
    attach_card(account, method, customer["id"])
    return method


def detach(account: Account, _params: dict[str, Any], identifier: str) -> Thing:
    """Take a card from its customer for good."""
    method = find(account, "payment_method", identifier, noun="PaymentMethod")
    if method["customer"] is None:
        raise Invalid(
            "The payment method you provided is not attached to a customer so detachment is impossible."
        )
    customer = account.store.get("customer", method["customer"])
    with account.telling("payment_method.detached", method):
        method["customer"] = None
    if customer and customer["invoice_settings"]["default_payment_method"] == identifier:
        with account.telling("customer.updated", customer):
            customer["invoice_settings"]["default_payment_method"] = None
    return method


def retrieve(account: Account, _params: dict[str, Any], identifier: str) -> Thing:
    """Return a payment method."""
    if identifier in CARDS:
        return card_named(account, identifier)
    return find(account, "payment_method", identifier, noun="PaymentMethod")


def update(account: Account, params: dict[str, Any], identifier: str) -> Thing:
    """Change a payment method's metadata."""
    method = find(account, "payment_method", identifier, noun="PaymentMethod")
    with account.telling("payment_method.updated", method):
        if "metadata" in params:
            merge_metadata(method, params["metadata"])
    return method


def list_all(account: Account, params: dict[str, Any]) -> Thing:
    """Return a page of the payment methods of a customer."""
    return list_of_customer(account, params, params.get("customer"), _PATH)


def list_for_customer(account: Account, params: dict[str, Any], customer: str) -> Thing:
    """Return a page of the payment methods of the customer in the path."""
    find(account, "customer", customer)
    return list_of_customer(account, params, customer, f"/v1/customers/{customer}/payment_methods")


def list_of_customer(account: Account, params: dict[str, Any], customer: str | None, url: str) -> Thing:
    """Return a page of the cards attached to one customer, or to none."""
    found = [item for item in account.store.all("payment_method") if item["customer"] == customer]
    return page(found if params.get("type", "card") == "card" else [], params, url)


_TYPE = Choice(("card",))
ROUTES = (
    Route("GET", _PATH, list_all, takes(**CURSORS, customer=Text(), type=_TYPE)),
    Route("GET", f"{_PATH}/{{id}}", retrieve, takes()),
    Route("POST", f"{_PATH}/{{id}}", update, takes(metadata=METADATA)),
    Route("POST", f"{_PATH}/{{id}}/attach", attach, takes("customer", customer=Text())),
    Route("POST", f"{_PATH}/{{id}}/detach", detach, takes()),
    Route("GET", "/v1/customers/{id}/payment_methods", list_for_customer, takes(**CURSORS, type=_TYPE)),
)
