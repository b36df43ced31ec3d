"""Setup intents, which set up a card for later payments."""

from typing import Any

from stripe_double.account import Account, find, find_param
from stripe_double.errors import InvalidRequest, RecordedCardError
from stripe_double.events import emit
from stripe_double.parameters import Array, Boolean, Enum, Hash, Metadata, Parameter, String, takes
from stripe_double.resources.cards import card_of, decline_error, next_action
from stripe_double.resources.payment_methods import attach_card, find_or_create_card
from stripe_double.routing import Route
from stripe_double.store import Resource, new_id, public

_PATH = "/v1/setup_intents"
_OPEN = ("requires_payment_method", "requires_confirmation", "requires_action")
_NULL = (
    "allowed_payment_method_types", "application", "cancellation_reason", "excluded_payment_method_types",
    "flow_directions", "last_setup_error", "latest_attempt", "mandate",
    "next_action", "on_behalf_of", "payment_method", "payment_method_configuration_details",
    "payment_method_options", "single_use_mandate",
)  # fmt: skip


def create(account: Account, params: dict[str, Any]) -> Resource:
    """Create a setup intent."""
    if "customer" in params:
        find_param(account, "customer", params["customer"], "customer")
    intent = account.add(_new_setup_intent(account.now, params))
    emit(account, "setup_intent.created", intent)
    return intent


def retrieve(account: Account, params: dict[str, Any], identifier: str) -> Resource:
    """Return a setup intent; a client secret in the request must match."""
    intent = find(account, "setup_intent", identifier, noun="setupintent")
    if params.get("client_secret", intent["client_secret"]) != intent["client_secret"]:
        raise InvalidRequest(
            "The client_secret provided does not match the client_secret associated with the SetupIntent."
        )
    return intent


def confirm(account: Account, params: dict[str, Any], identifier: str) -> Resource:
    """Set up the card, as a browser does; some cards require a 3-D Secure challenge."""
    intent = retrieve(account, params, identifier)
    if intent["status"] not in _OPEN:
        message = f"You cannot confirm this SetupIntent because it has already {intent['status']}."
        raise InvalidRequest(message, code="setup_intent_unexpected_state")
    _require_return_url(intent, params)
    payment_method = params.get("payment_method") or intent["payment_method"]
    if payment_method is None:
        message = "You cannot confirm this SetupIntent because it's missing a payment method."
        raise InvalidRequest(message, code="setup_intent_unexpected_state")
    _set_up(account, intent, find_or_create_card(account, payment_method), params.get("return_url"))
    return intent


def complete_challenge(account: Account, intent: Resource, *, succeeds: bool) -> None:
    """Continue after the 3-D Secure challenge."""
    method = account.store.get("payment_method", intent["payment_method"]) or {}
    if succeeds:
        _succeed(account, intent, method)
        return
    error: Resource = {
        "code": "setup_intent_authentication_failure",
        "message": "The latest attempt to set up the payment method has failed because authentication failed.",
        "payment_method": public(method),
        "type": "invalid_request_error",
    }
    _fail(account, intent, error)


def _set_up(account: Account, intent: Resource, method: Resource, return_url: str | None) -> None:
    intent.update(payment_method=method["id"], latest_attempt=new_id("setatt"))
    card = card_of(method)
    if card.setup_decline:
        error = decline_error(card.setup_decline) | {"payment_method": public(method)}
        _fail(account, intent, error)
        raise RecordedCardError({**error, "setup_intent": public(intent)})
    if card.authentication in ("always", "unless_set_up"):
        intent.update(status="requires_action", next_action=next_action(account, intent, return_url))
        emit(account, "setup_intent.requires_action", intent)
    else:
        _succeed(account, intent, method)


def _succeed(account: Account, intent: Resource, method: Resource) -> None:
    method["_set_up"] = True
    if intent["customer"]:
        attach_card(account, method, intent["customer"])
    intent.update(status="succeeded", next_action=None, last_setup_error=None)
    emit(account, "setup_intent.succeeded", intent)


def _fail(account: Account, intent: Resource, error: Resource) -> None:
    intent.update(
        status="requires_payment_method", payment_method=None, next_action=None, last_setup_error=error
    )
    emit(account, "setup_intent.setup_failed", intent)


def _require_return_url(intent: Resource, params: dict[str, Any]) -> None:
    automatic = intent["automatic_payment_methods"] or {}
    if automatic.get("enabled") and automatic["allow_redirects"] == "always" and "return_url" not in params:
        raise InvalidRequest(
            "This SetupIntent is configured to accept payment methods enabled in your Dashboard. Because some of "
            "these payment methods might redirect your customer off of your page, you must provide a `return_url`.",
            param="return_url",
        )


def _new_setup_intent(now: int, params: dict[str, Any]) -> Resource:
    identifier = new_id("seti")
    automatic = params.get("automatic_payment_methods", {"enabled": "payment_method_types" not in params})
    return {
        "object": "setup_intent",
        "id": identifier,
        **dict.fromkeys(_NULL),
        "automatic_payment_methods": {"allow_redirects": "always", **automatic}
        if automatic["enabled"]
        else None,
        "client_secret": f"{identifier}_{new_id('secret')}",
        "created": now,
        "customer": params.get("customer"),
        "description": params.get("description"),
        "livemode": False,
        "metadata": params.get("metadata") or {},
        "payment_method_types": params.get("payment_method_types", ["card"]),
        "status": "requires_payment_method",
        "usage": params.get("usage", "off_session"),
    }


_SECRET: dict[str, Parameter] = {"client_secret": String()}
_CONFIRM: dict[str, Parameter] = {"payment_method": String(), "return_url": String()}
_CREATE = takes(
    automatic_payment_methods=Hash(
        {"allow_redirects": Enum(("always", "never")), "enabled": Boolean()}, required=("enabled",)
    ),
    customer=String(),
    description=String(1000),
    metadata=Metadata(),
    payment_method_types=Array(Enum(("card",))),
    usage=Enum(("off_session", "on_session")),
)
ROUTES = (
    Route("POST", _PATH, create, _CREATE),
    Route("GET", f"{_PATH}/{{id}}", retrieve, takes(**_SECRET), allows_publishable_key=True),
    Route(
        "POST", f"{_PATH}/{{id}}/confirm", confirm, takes(**_CONFIRM, **_SECRET), allows_publishable_key=True
    ),
)
