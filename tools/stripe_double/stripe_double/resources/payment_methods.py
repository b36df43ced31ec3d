"""Payment methods: only cards, created from Stripe's test cards."""

from typing import Any

from stripe_double.account import Account, find, find_param
from stripe_double.errors import CardError, InvalidRequest, ResourceMissing
from stripe_double.events import emit, emit_changes
from stripe_double.parameters import CURSORS, Enum, String, takes
from stripe_double.resources.cards import CARDS, card_of, decline_error
from stripe_double.routing import Route, paginate
from stripe_double.store import Resource, new_id

_PATH = "/v1/payment_methods"
_NOUN = "PaymentMethod"


def find_or_create_card(account: Account, identifier: str) -> Resource:
    """Return the payment method; for the name of a test card, create one."""
    if identifier in CARDS:
        return account.add(_new_payment_method(identifier, account.now))
    return find_param(account, "payment_method", identifier, "payment_method", _NOUN)


def attach_card(account: Account, method: Resource, customer: str) -> None:
    """Attach a card to a customer; attaching it again changes nothing."""
    if method["customer"] == customer:
        return
    if method["customer"] is not None:
        raise InvalidRequest("The payment method you provided has already been attached to a customer.")
    decline_code = card_of(method).setup_decline
    if decline_code:
        raise CardError(decline_error(decline_code))
    method["customer"] = customer
    emit(account, "payment_method.attached", method)


def attach(account: Account, params: dict[str, Any], identifier: str) -> Resource:
    """Attach a card to a customer."""
    customer = find_param(account, "customer", params["customer"], "customer")
    method = retrieve(account, params, identifier)
    attach_card(account, method, customer["id"])
    return method


def detach(account: Account, _params: dict[str, Any], identifier: str) -> Resource:
    """Detach a card from its customer permanently."""
    method = _find(account, identifier)
    if method["customer"] is None:
        message = "The payment method you provided is not attached to a customer so detachment is impossible."
        raise InvalidRequest(message)
    customer = account.store.get("customer", method["customer"])
    with emit_changes(account, "payment_method.detached", method):
        method["customer"] = None
    if (
        customer
        and not customer.get("deleted")
        and customer["invoice_settings"]["default_payment_method"] == identifier
    ):
        with emit_changes(account, "customer.updated", customer):
            customer["invoice_settings"]["default_payment_method"] = None
    for row in account.store.all("subscription"):
        if row["default_payment_method"] == identifier:
            subscription = account.store.get("subscription", row["id"]) or row
            subscription["default_payment_method"] = None
    return method


def retrieve(account: Account, _params: dict[str, Any], identifier: str) -> Resource:
    """Return a payment method."""
    return find_or_create_card(account, identifier) if identifier in CARDS else _find(account, identifier)


def list_all(account: Account, params: dict[str, Any]) -> Resource:
    """Return a page of one customer's cards, or of unattached cards."""
    return _list(account, params, params.get("customer"), _PATH)


def list_for_customer(account: Account, params: dict[str, Any], customer: str) -> Resource:
    """Return a page of the cards of the customer in the path."""
    if find(account, "customer", customer).get("deleted"):
        raise ResourceMissing("customer", customer)
    return _list(account, params, customer, f"/v1/customers/{customer}/payment_methods")


def _find(account: Account, identifier: str) -> Resource:
    return find(account, "payment_method", identifier, _NOUN)


def _list(account: Account, params: dict[str, Any], customer: str | None, url: str) -> Resource:
    methods = [method for method in account.store.all("payment_method") if method["customer"] == customer]
    return paginate(methods, params, url)


def _new_payment_method(name: str, now: int) -> Resource:
    card = CARDS[name]
    return {
        "object": "payment_method",
        "id": new_id("pm"),
        "created": now,
        "livemode": False,
        "allow_redisplay": "unspecified",
        "billing_details": dict.fromkeys(("address", "email", "name", "phone", "tax_id")),
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
        "customer_account": None,
        "metadata": {},
        "type": "card",
        "_card": {"name": name, "changes": {}},
        "_set_up": card.authentication == "on_session",
    }


_TYPE = Enum(("card",))
ROUTES = (
    Route("GET", _PATH, list_all, takes(**CURSORS, customer=String(), type=_TYPE)),
    Route("GET", f"{_PATH}/{{id}}", retrieve, takes()),
    Route("POST", f"{_PATH}/{{id}}/attach", attach, takes("customer", customer=String())),
    Route("POST", f"{_PATH}/{{id}}/detach", detach, takes()),
    Route("GET", "/v1/customers/{id}/payment_methods", list_for_customer, takes(**CURSORS, type=_TYPE)),
)
