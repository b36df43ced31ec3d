"""Cardholders: what a bank asks them, and what their answer leads to."""

from devstack.stripe.billing.collecting import settle
from devstack.stripe.billing.intents import authenticated
from devstack.stripe.billing.payments import invoice_of
from devstack.stripe.billing.setups import authentication_failed, succeed
from devstack.stripe.state.account import Account
from devstack.stripe.state.things import Thing
from devstack.stripe.wire.refusals import Invalid

_KINDS = {"seti": "setup_intent", "pi": "payment_intent"}


def asking(account: Account, identifier: str) -> Thing | None:
    """Return the setup or payment intent; None where there is none."""
    return account.store.get(_KINDS.get(identifier.split("_")[0], ""), identifier)


def answer(account: Account, intent: Thing, *, agreed: bool) -> None:
    """Go on with the intent after its cardholder agreed, or did not."""
    if intent["status"] != "requires_action":
        raise Invalid(f"This intent asks for nothing: it is {intent['status']}.")
    if intent["object"] == "setup_intent":
        (succeed if agreed else authentication_failed)(account, intent)
        return
    status = authenticated(account, intent, agreed=agreed)
    invoice = invoice_of(account, intent)
    if invoice is not None:
        settle(account, invoice, status)
