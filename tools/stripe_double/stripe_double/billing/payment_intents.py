"""Payment intents and invoice payments, only of invoices."""

from typing import Any

from stripe_double.account import Account, find, find_customer_card
from stripe_double.billing.collection import apply_payment_status, count_attempt, subscription_of
from stripe_double.billing.payments import OPEN_STATUSES, attempt_payment, invoice_of
from stripe_double.errors import InvalidRequest, RecordedCardError
from stripe_double.events import emit_changes
from stripe_double.parameters import Boolean, Enum, Hash, String, takes
from stripe_double.resources.payment_methods import attach_card, find_or_create_card
from stripe_double.routing import Route, list_route, retrieve_route
from stripe_double.store import Resource, public

_PATH = "/v1/payment_intents"
_PAYMENTS_PATH = "/v1/invoice_payments"


def retrieve(account: Account, params: dict[str, Any], identifier: str) -> Resource:
    """Return a payment intent; a client secret in the request must match."""
    intent = find(account, "payment_intent", identifier, noun="payment_intent")
    if params.get("client_secret", intent["client_secret"]) != intent["client_secret"]:
        raise InvalidRequest(
            "The client_secret provided does not match the client_secret associated with the PaymentIntent.",
            code="payment_intent_invalid_parameter",
            param="client_secret",
        )
    return intent


def confirm(account: Account, params: dict[str, Any], identifier: str) -> Resource:
    """Pay the intent's invoice with a card, on session unless `off_session` is sent."""
    intent = retrieve(account, params, identifier)
    if intent["status"] not in OPEN_STATUSES:
        message = f"You cannot confirm this PaymentIntent because it has already {intent['status']}."
        raise InvalidRequest(message, code="payment_intent_unexpected_state")
    method = _card(account, intent, params)
    off_session, return_url = params.get("off_session", False), params.get("return_url")
    status = attempt_payment(account, intent, method, off_session=off_session, return_url=return_url)
    invoice = invoice_of(account, intent)
    if invoice is not None:
        apply_payment_status(account, invoice, status, counted=count_attempt(invoice))
        if status == "succeeded":
            _save_card(account, invoice, method)
    if status == "requires_payment_method":
        raise RecordedCardError({**intent["last_payment_error"], "payment_intent": public(intent)})
    return intent


def _card(account: Account, intent: Resource, params: dict[str, Any]) -> Resource:
    payment_method = params.get("payment_method") or intent["payment_method"]
    if payment_method is None:
        message = "You cannot confirm this PaymentIntent because it's missing a payment method."
        raise InvalidRequest(message, code="payment_intent_unexpected_state")
    method = find_or_create_card(account, payment_method)
    if method["customer"] is None:
        attach_card(account, method, intent["customer"])
    return find_customer_card(account, method["id"], intent["customer"], "payment_method")


def _save_card(account: Account, invoice: Resource, method: Resource) -> None:
    subscription = subscription_of(account, invoice)
    if subscription is None:
        return
    method["_set_up"] = True
    if subscription["payment_settings"]["save_default_payment_method"] == "on_subscription":
        with emit_changes(account, "customer.subscription.updated", subscription):
            subscription["default_payment_method"] = method["id"]


def _pays_with(payment: Resource, value: dict[str, Any]) -> bool:
    return bool(value.get("payment_intent") in (None, payment["payment"]["payment_intent"]))


_CONFIRM = takes(client_secret=String(), off_session=Boolean(), payment_method=String(), return_url=String())
_PAYMENT = Hash({"type": Enum(("payment_intent",)), "payment_intent": String()}, required=("type",))
ROUTES = (
    list_route(_PATH, "payment_intent", customer=String()),
    Route("GET", f"{_PATH}/{{id}}", retrieve, takes(client_secret=String()), allows_publishable_key=True),
    Route("POST", f"{_PATH}/{{id}}/confirm", confirm, _CONFIRM, allows_publishable_key=True),
    list_route(
        _PAYMENTS_PATH,
        "invoice_payment",
        filters={"payment": _pays_with},
        invoice=String(),
        payment=_PAYMENT,
        status=Enum(("canceled", "open", "paid")),
    ),
    retrieve_route(_PAYMENTS_PATH, "invoice_payment"),
)
