"""Setting a card up for later payments."""

from devstack.stripe.billing.asking import next_action
from devstack.stripe.billing.cards import card_of, refusal
from devstack.stripe.billing.wallet import attach_card
from devstack.stripe.state.account import Account
from devstack.stripe.state.things import Thing, new_id, public
from devstack.stripe.wire.refusals import CardRefusedOnRecord


def complete_setup(account: Account, intent: Thing, method: Thing, return_url: str | None) -> None:
    """Set the card up, or ask the cardholder first; a refused card stays on record."""
    intent.update(payment_method=method["id"], latest_attempt=new_id("setatt"))
    decline_code = card_of(method).refuses_setup
    if decline_code:
        error = refusal(decline_code) | {"payment_method": public(method)}
        fail(account, intent, error)
        raise CardRefusedOnRecord({**error, "setup_intent": public(intent)})
    if card_of(method).asks in ("always", "unless_set_up"):
        _ask(account, intent, return_url)
    else:
        succeed(account, intent)


def succeed(account: Account, intent: Thing) -> None:
    """Attach the card to the intent's customer, ready for payments without its holder."""
    method = account.store.get("payment_method", intent["payment_method"]) or {}
    method["_set_up"] = True
    if intent["customer"]:
        attach_card(account, method, intent["customer"])
    intent.update(status="succeeded", next_action=None, last_setup_error=None)
    account.tell("setup_intent.succeeded", intent)


def fail(account: Account, intent: Thing, error: Thing) -> None:
    """Let the intent wait for another card."""
    intent.update(
        status="requires_payment_method", payment_method=None, next_action=None, last_setup_error=error
    )
    account.tell("setup_intent.setup_failed", intent)


def authentication_failed(account: Account, intent: Thing) -> None:
    """Note that the cardholder did not agree."""
    method = account.store.get("payment_method", intent["payment_method"]) or {}
    message = "The latest attempt to set up the payment method has failed because authentication failed."
    error = {
        "code": "setup_intent_authentication_failure",
        "message": message,
        "type": "invalid_request_error",
    }
    fail(account, intent, error | {"payment_method": public(method)})


def _ask(account: Account, intent: Thing, return_url: str | None) -> None:
    intent.update(status="requires_action", next_action=next_action(account, intent, return_url))
    account.tell("setup_intent.requires_action", intent)
