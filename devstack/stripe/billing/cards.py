"""Stripe's test cards: what the bank behind each of them answers."""

from dataclasses import dataclass, replace

from devstack.stripe.state.things import Thing


@dataclass(frozen=True)
class Card:
    """One card; `asks` tells when its bank wants to see the cardholder."""

    last4: str = "4242"
    brand: str = "visa"
    refuses_setup: str | None = None
    refuses_charge: str | None = None
    asks: str = "never"  # never, unless_set_up, on_session, always
    disputed_as: str | None = None
    refund: str = "succeeded"  # succeeded, pending, fails


def _refuses(code: str, last4: str) -> Card:
    return Card(last4, refuses_setup=code, refuses_charge=code)


_BROKE = Card("3178", refuses_charge="insufficient_funds", asks="on_session")

CARDS = {
    "pm_card_visa": Card(),
    "pm_card_visa_debit": Card("5556"),
    "pm_card_mastercard": Card("4444", "mastercard"),
    "pm_card_amex": Card("0005", "amex"),
    "pm_card_chargeCustomerFail": Card("0341", refuses_charge="generic_decline"),
    "pm_card_chargeDeclined": _refuses("generic_decline", "0002"),
    "pm_card_visa_chargeDeclined": _refuses("generic_decline", "0002"),
    "pm_card_chargeDeclinedInsufficientFunds": _refuses("insufficient_funds", "9995"),
    "pm_card_visa_chargeDeclinedInsufficientFunds": _refuses("insufficient_funds", "9995"),
    "pm_card_visa_chargeDeclinedLostCard": _refuses("lost_card", "9987"),
    "pm_card_visa_chargeDeclinedStolenCard": _refuses("stolen_card", "9979"),
    "pm_card_chargeDeclinedExpiredCard": _refuses("expired_card", "0069"),
    "pm_card_chargeDeclinedIncorrectCvc": _refuses("incorrect_cvc", "0127"),
    "pm_card_chargeDeclinedProcessingError": _refuses("processing_error", "0119"),
    "pm_card_visa_chargeDeclinedVelocityLimitExceeded": _refuses("card_velocity_exceeded", "6975"),
    "pm_card_authenticationRequired": Card("3184", asks="always"),
    "pm_card_authenticationRequiredOnSetup": Card("3155", asks="unless_set_up"),
    "pm_card_authenticationRequiredSetupForOffSession": Card("0446", asks="on_session"),
    "pm_card_authenticationRequiredChargeDeclinedInsufficientFunds": _BROKE,
    "pm_card_threeDSecure2Required": Card("3220", asks="always"),
    "pm_card_createDispute": Card("0259", disputed_as="fraudulent"),
    "pm_card_createDisputeProductNotReceived": Card("2685", disputed_as="product_not_received"),
    "pm_card_pendingRefund": Card("7726", refund="pending"),
    "pm_card_refundFail": Card("5126", refund="fails"),
}

_WORDS = {
    "insufficient_funds": ("card_declined", "Your card has insufficient funds."),
    "expired_card": ("expired_card", "Your card has expired."),
    "incorrect_cvc": ("incorrect_cvc", "Your card's security code is incorrect."),
    "processing_error": (
        "processing_error",
        "An error occurred while processing your card. Try again in a little bit.",
    ),
}


def card_of(payment_method: Thing) -> Card:
    """Return the card behind a payment method, as its bank behaves now."""
    kept = payment_method["_card"]
    return replace(CARDS[kept["name"]], **kept["changes"])


def asks_cardholder(payment_method: Thing, *, off_session: bool) -> bool:
    """Say whether this charge needs the cardholder."""
    asks = card_of(payment_method).asks
    if asks == "unless_set_up":
        return not (off_session and payment_method["_set_up"])
    return asks == "always" or (asks == "on_session" and not off_session)


def refusal(decline_code: str) -> Thing:
    """Return Stripe's words for a bank's refusal."""
    code, message = _WORDS.get(decline_code, ("card_declined", "Your card was declined."))
    error = {"code": code, "decline_code": decline_code, "message": message, "type": "card_error"}
    return error | ({"param": "cvc"} if code == "incorrect_cvc" else {})
