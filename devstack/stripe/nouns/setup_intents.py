"""Setup intents: keeping a card for later."""

from typing import Any

from devstack.stripe.billing.blank_setup import blank_setup
from devstack.stripe.billing.setups import complete_setup
from devstack.stripe.billing.wallet import card_named
from devstack.stripe.state.account import Account
from devstack.stripe.state.things import Thing
from devstack.stripe.wire.finding import find, merge_metadata, named
from devstack.stripe.wire.lists import page
from devstack.stripe.wire.parameters import METADATA, PAGE, takes
from devstack.stripe.wire.refusals import Invalid
from devstack.stripe.wire.routes import Route
from devstack.stripe.wire.shapes import Choice, Flag, Hash, Several, Shape, Text

_PATH = "/v1/setup_intents"
_AUTOMATIC = Hash({"allow_redirects": Choice(("always", "never")), "enabled": Flag()}, required=("enabled",))
_WAITS = ("requires_payment_method", "requires_confirmation", "requires_action")
_CONFIRM: dict[str, Shape] = {"payment_method": Text(), "return_url": Text()}


def create(account: Account, params: dict[str, Any]) -> Thing:
    """Create a setup intent."""
    if "customer" in params:
        named(account, "customer", params["customer"], "customer")
    intent = account.add(blank_setup(account.now, params))
    account.tell("setup_intent.created", intent)
    if params.get("confirm"):
        return confirm(account, params, intent["id"])
    if "payment_method" in params:
        intent.update(
            payment_method=card_named(account, params["payment_method"])["id"], status="requires_confirmation"
        )
    return intent


def retrieve(account: Account, params: dict[str, Any], identifier: str) -> Thing:
    """Return a setup intent."""
    return _known(account, params, identifier)


def update(account: Account, params: dict[str, Any], identifier: str) -> Thing:
    """Change a setup intent that waits."""
    intent = find(account, "setup_intent", identifier, noun="setupintent")
    if "metadata" in params:
        merge_metadata(intent, params["metadata"])
    if "description" in params:
        intent["description"] = params["description"]
    return intent


def list_all(account: Account, params: dict[str, Any]) -> Thing:
    """Return a page of setup intents."""
    found = account.store.all("setup_intent")
    for name in ("customer", "payment_method"):
        if name in params:
            found = [item for item in found if item[name] == params[name]]
    return page(found, params, _PATH)


def confirm(account: Account, params: dict[str, Any], identifier: str) -> Thing:
    """Set the card up, as the browser does; a card whose bank asks for its holder waits for an answer."""
    intent = _known(account, params, identifier)
    if intent["status"] not in _WAITS:
        message = f"You cannot confirm this SetupIntent because it has already {intent['status']}."
        raise Invalid(message, code="setup_intent_unexpected_state")
    _return_address(intent, params)
    chosen = params.get("payment_method") or intent["payment_method"]
    if chosen is None:
        message = "You cannot confirm this SetupIntent because it's missing a payment method."
        raise Invalid(message, code="setup_intent_unexpected_state")
    complete_setup(account, intent, card_named(account, chosen), params.get("return_url"))
    return intent


def cancel(account: Account, params: dict[str, Any], identifier: str) -> Thing:
    """Give the intent up."""
    intent = find(account, "setup_intent", identifier, noun="setupintent")
    if intent["status"] not in _WAITS:
        message = f"You cannot cancel this SetupIntent because it has a status of {intent['status']}."
        raise Invalid(message, code="setup_intent_unexpected_state")
    intent.update(status="canceled", cancellation_reason=params.get("cancellation_reason"), next_action=None)
    account.tell("setup_intent.canceled", intent)
    return intent


def _known(account: Account, params: dict[str, Any], identifier: str) -> Thing:
    intent = find(account, "setup_intent", identifier, noun="setupintent")
    if params.get("client_secret", intent["client_secret"]) != intent["client_secret"]:
        raise Invalid(
            "The client_secret provided does not match the client_secret associated with the SetupIntent."
        )
    return intent


def _return_address(intent: Thing, params: dict[str, Any]) -> None:
    automatic = intent["automatic_payment_methods"] or {}
    if automatic.get("enabled") and automatic["allow_redirects"] == "always" and "return_url" not in params:
        raise Invalid(
            "This SetupIntent is configured to accept payment methods enabled in your Dashboard. Because some of "
            "these payment methods might redirect your customer off of your page, you must provide a `return_url`.",
            param="return_url",
        )


_CREATE = takes(
    **_CONFIRM,
    automatic_payment_methods=_AUTOMATIC,
    confirm=Flag(),
    customer=Text(),
    description=Text(1000),
    metadata=METADATA,
    payment_method_types=Several(Choice(("card",))),
    usage=Choice(("off_session", "on_session")),
)
_REASON = Choice(("abandoned", "duplicate", "requested_by_customer"))
_SECRET = Text()
ROUTES = (
    Route("POST", _PATH, create, _CREATE),
    Route("GET", _PATH, list_all, takes(**PAGE, customer=Text(), payment_method=Text())),
    Route("GET", f"{_PATH}/{{id}}", retrieve, takes(client_secret=_SECRET), publishable=True),
    Route(
        "POST", f"{_PATH}/{{id}}", update, takes(metadata=METADATA, description=Text(1000, clearable=True))
    ),
    Route("POST", f"{_PATH}/{{id}}/cancel", cancel, takes(cancellation_reason=_REASON)),
    Route(
        "POST", f"{_PATH}/{{id}}/confirm", confirm, takes(**_CONFIRM, client_secret=_SECRET), publishable=True
    ),
)
