"""Payment intents of invoices."""

from typing import Any

from devstack.stripe.billing.collecting import note_attempt, settle
from devstack.stripe.billing.intents import attempt
from devstack.stripe.billing.payments import invoice_of
from devstack.stripe.billing.wallet import attach_card, card_named
from devstack.stripe.state.account import Account
from devstack.stripe.state.things import Thing, public
from devstack.stripe.wire.finding import find, owned_card
from devstack.stripe.wire.lists import page
from devstack.stripe.wire.parameters import PAGE, takes
from devstack.stripe.wire.refusals import CardRefusedOnRecord, Invalid
from devstack.stripe.wire.routes import Route
from devstack.stripe.wire.shapes import Flag, Text

_PATH = "/v1/payment_intents"
_WAITS = ("requires_payment_method", "requires_confirmation", "requires_action")


def retrieve(account: Account, params: dict[str, Any], identifier: str) -> Thing:
    """Return a payment intent."""
    return _known(account, params, identifier)


def list_all(account: Account, params: dict[str, Any]) -> Thing:
    """Return a page of payment intents."""
    found = account.store.all("payment_intent")
    if "customer" in params:
        found = [item for item in found if item["customer"] == params["customer"]]
    return page(found, params, _PATH)


def confirm(account: Account, params: dict[str, Any], identifier: str) -> Thing:
    """Pay the intent's invoice with a card, its holder present unless told otherwise."""
    intent = _known(account, params, identifier)
    if intent["status"] not in _WAITS:
        message = f"You cannot confirm this PaymentIntent because it has already {intent['status']}."
        raise Invalid(message, code="payment_intent_unexpected_state")
    method = _card(account, intent, params)
    off_session, return_url = params.get("off_session", False), params.get("return_url")
    status = attempt(account, intent, method, off_session=off_session, return_url=return_url)
    invoice = invoice_of(account, intent)
    if invoice is not None:
        settle(account, invoice, status, counted=note_attempt(invoice))
        _keep_card(account, invoice, method, status)
    if status == "requires_payment_method":
        raise CardRefusedOnRecord({**intent["last_payment_error"], "payment_intent": public(intent)})
    return intent


def _known(account: Account, params: dict[str, Any], identifier: str) -> Thing:
    intent = find(account, "payment_intent", identifier, noun="payment_intent")
    if params.get("client_secret", intent["client_secret"]) != intent["client_secret"]:
        raise Invalid(
            "The client_secret provided does not match the client_secret associated with the PaymentIntent.",
            code="payment_intent_invalid_parameter",
            param="client_secret",
        )
    return intent


def _card(account: Account, intent: Thing, params: dict[str, Any]) -> Thing:
    chosen = params.get("payment_method") or intent["payment_method"]
    if chosen is None:
        message = "You cannot confirm this PaymentIntent because it's missing a payment method."
        raise Invalid(message, code="payment_intent_unexpected_state")
    method = card_named(account, chosen)
    if method["customer"] is None:
        attach_card(account, method, intent["customer"])
    return owned_card(account, method["id"], intent["customer"], "payment_method")


def _keep_card(account: Account, invoice: Thing, method: Thing, status: str) -> None:
    details = (invoice["parent"] or {}).get("subscription_details")
    subscription = account.store.get("subscription", details["subscription"]) if details else None
    if subscription is None or status != "succeeded":
        return
    method["_set_up"] = True
    if subscription["payment_settings"]["save_default_payment_method"] == "on_subscription":
        with account.telling("customer.subscription.updated", subscription):
            subscription["default_payment_method"] = method["id"]


_CONFIRM = takes(client_secret=Text(), off_session=Flag(), payment_method=Text(), return_url=Text())
ROUTES = (
    Route("GET", _PATH, list_all, takes(**PAGE, customer=Text())),
    Route("GET", f"{_PATH}/{{id}}", retrieve, takes(client_secret=Text()), publishable=True),
    Route("POST", f"{_PATH}/{{id}}/confirm", confirm, _CONFIRM, publishable=True),
)
