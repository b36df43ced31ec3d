"""Payment methods: cards only, made from Stripe's test cards."""

from typing import Any

from devstack.stripe.billing.cards import CARDS, card_of, refusal
from devstack.stripe.nouns.finding import find, merge_metadata, named
from devstack.stripe.state.account import Account
from devstack.stripe.state.things import Thing, new_id
from devstack.stripe.wire.lists import page
from devstack.stripe.wire.refusals import CardRefused, Invalid
from devstack.stripe.wire.routes import Route
from devstack.stripe.wire.shapes import METADATA, PAGE, Choice, Text, takes

_PATH = "/v1/payment_methods"


def test_card(account: Account, identifier: str, param: str = "payment_method") -> Thing:
    """Return the payment method; naming one of Stripe's test cards makes a new one of it."""
    if identifier in CARDS:
        return account.add(_blank(identifier, account.now))
    return named(account, "payment_method", identifier, param, noun="PaymentMethod")


def attach_card(account: Account, method: Thing, customer: str) -> None:
    """Attach a card to a customer; attaching it again changes nothing."""
    if method["customer"] == customer:
        return
    if method["customer"] is not None:
        raise Invalid("The payment method you provided has already been attached to a customer.")
    decline_code = card_of(method).refuses_setup
    if decline_code:
        raise CardRefused(refusal(decline_code))
    method["customer"] = customer
    account.tell("payment_method.attached", method)


def attach(account: Account, params: dict[str, Any], identifier: str) -> Thing:
    """Attach a card to a customer."""
    customer = named(account, "customer", params["customer"], "customer")
    if identifier not in CARDS:
        find(account, "payment_method", identifier, noun="PaymentMethod")
    method = test_card(account, identifier)
    attach_card(account, method, customer["id"])
    return method


def detach(account: Account, _params: dict[str, Any], identifier: str) -> Thing:
    """Take a card from its customer for good."""
    method = find(account, "payment_method", identifier, noun="PaymentMethod")
    if method["customer"] is None:
        raise Invalid("The payment method you provided is not attached to a customer so detachment is impossible.")
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
        return test_card(account, identifier)
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


def _blank(name: str, now: int) -> Thing:
    card = CARDS[name]
    nobody = dict.fromkeys(("address", "email", "name", "phone", "tax_id"))
    return {
        "object": "payment_method",
        "id": new_id("pm"),
        "created": now,
        "livemode": False,
        "allow_redisplay": "unspecified",
        "billing_details": nobody,
        "card": {
            "brand": card.brand,
            "checks": dict.fromkeys(("address_line1_check", "address_postal_code_check", "cvc_check")),
            "country": "US",
            "display_brand": card.brand,
            "exp_month": 12,
            "exp_year": 2099,
            "fingerprint": f"{name[8:]}{card.last4}",
            "funding": "credit",
            "generated_from": None,
            "last4": card.last4,
            "networks": {"available": [card.brand], "preferred": None},
            "regulated_status": "unregulated",
            "three_d_secure_usage": {"supported": True},
            "wallet": None,
        },
        "customer": None,
        "metadata": {},
        "type": "card",
        "_card": {"name": name, "changes": {}},
        "_set_up": card.asks == "on_session",
    }


_TYPE = Choice(("card",))
ROUTES = (
    Route("GET", _PATH, list_all, takes(**PAGE, customer=Text(), type=_TYPE)),
    Route("GET", f"{_PATH}/{{id}}", retrieve, takes()),
    Route("POST", f"{_PATH}/{{id}}", update, takes(metadata=METADATA)),
    Route("POST", f"{_PATH}/{{id}}/attach", attach, takes("customer", customer=Text())),
    Route("POST", f"{_PATH}/{{id}}/detach", detach, takes()),
    Route("GET", "/v1/customers/{id}/payment_methods", list_for_customer, takes(**PAGE, type=_TYPE)),
)
