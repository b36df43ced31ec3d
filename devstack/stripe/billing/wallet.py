"""The cards of customers."""

from devstack.stripe.billing.cards import CARDS, card_of, refusal
from devstack.stripe.state.account import Account
from devstack.stripe.state.things import Thing, new_id
from devstack.stripe.wire.finding import named
from devstack.stripe.wire.refusals import CardRefused, Invalid


def card_named(account: Account, identifier: str, param: str = "payment_method") -> Thing:
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
