"""Payment intents: the attempts to collect one amount."""

from devstack.stripe.billing.asking import next_action
from devstack.stripe.billing.cards import asks_cardholder, card_of, refusal
from devstack.stripe.billing.charges import record_charge
from devstack.stripe.billing.disputing import open_dispute
from devstack.stripe.state.account import Account
from devstack.stripe.state.things import Thing, new_id, public

_OPEN = ("requires_payment_method", "requires_confirmation", "requires_action")
_NOTHING = (
    "application", "application_fee_amount", "automatic_payment_methods", "canceled_at", "cancellation_reason",
    "last_payment_error", "latest_charge", "next_action", "on_behalf_of", "payment_method",
    "payment_method_configuration_details", "processing", "receipt_email", "review", "shipping",
    "statement_descriptor", "statement_descriptor_suffix", "transfer_data", "transfer_group",
)  # fmt: skip


def make_intent(account: Account, *, customer: str, amount: int, currency: str, description: str) -> Thing:
    """Create an intent that waits for a payment method."""
    identifier = new_id("pi")
    intent: Thing = {
        "object": "payment_intent",
        "id": identifier,
        "amount": amount,
        "amount_capturable": 0,
        "amount_received": 0,
        "capture_method": "automatic",
        "client_secret": f"{identifier}_{new_id('secret')}",
        "confirmation_method": "automatic",
        "created": account.now,
        "currency": currency,
        "customer": customer,
        "description": description,
        "livemode": False,
        "metadata": {},
        "payment_method_options": {},
        "payment_method_types": ["card"],
        "setup_future_usage": "off_session",
        "status": "requires_payment_method",
        **dict.fromkeys(_NOTHING),
    }
    account.tell("payment_intent.created", account.add(intent))
    return intent


def attempt(
    account: Account, intent: Thing, method: Thing, *, off_session: bool, return_url: str | None = None
) -> str:
    """Try to collect with the card; return the intent's status after it."""
    intent["payment_method"] = method["id"]
    if asks_cardholder(method, off_session=off_session):
        intent.update(status="requires_action", next_action=next_action(account, intent, return_url))
        account.tell("payment_intent.requires_action", intent)
        return "requires_action"
    return _charge(account, intent, method)


def authenticated(account: Account, intent: Thing, *, agreed: bool) -> str:
    """Go on after the cardholder agreed, or did not; return the intent's status after it."""
    intent["next_action"] = None
    method = account.store.get("payment_method", intent["payment_method"])
    if agreed and method is not None:
        return _charge(account, intent, method)
    message = (
        "The provided PaymentMethod has failed authentication. Provide payment_method_data or a new one."
    )
    error: Thing = {"code": "payment_intent_authentication_failure", "message": message}
    return _refuse(
        account, intent, error | {"type": "invalid_request_error", "payment_method": public(method)}
    )


def cancel_intent(account: Account, intent: Thing, reason: str) -> None:
    """Give up collecting; an intent that has ended stays as it is."""
    if intent["status"] not in _OPEN:
        return
    intent.update(status="canceled", canceled_at=account.now, cancellation_reason=reason, next_action=None)
    account.tell("payment_intent.canceled", intent)


def _charge(account: Account, intent: Thing, method: Thing) -> str:
    decline_code = card_of(method).refuses_charge
    charge = record_charge(account, intent, method, decline_code)
    intent["latest_charge"] = charge["id"]
    if decline_code:
        error = refusal(decline_code) | {"charge": charge["id"], "payment_method": public(method)}
        return _refuse(account, intent, error)
    intent.update(
        status="succeeded", amount_received=intent["amount"], last_payment_error=None, next_action=None
    )
    account.tell("payment_intent.succeeded", intent)
    reason = card_of(method).disputed_as
    if reason:
        open_dispute(account, charge, reason=reason)
    return "succeeded"


def _refuse(account: Account, intent: Thing, error: Thing) -> str:
    intent.update(status="requires_payment_method", payment_method=None, last_payment_error=error)
    account.tell("payment_intent.payment_failed", intent)
    return "requires_payment_method"
