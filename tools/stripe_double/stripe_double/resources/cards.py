"""Stripe's test cards and the responses of their banks."""

from dataclasses import dataclass, replace

from stripe_double.account import Account
from stripe_double.store import Resource


@dataclass(frozen=True)
class Card:
    """One test card, with Stripe's decline codes."""

    last4: str = "4242"
    brand: str = "visa"
    setup_decline: str | None = None
    charge_decline: str | None = None
    authentication: str = "never"  # never, unless_set_up, on_session, always
    dispute_reason: str | None = None
    refund: str = "succeeded"  # succeeded, pending, fails


def _declined(code: str, last4: str) -> Card:
    return Card(last4, setup_decline=code, charge_decline=code)


_AUTHENTICATED_BUT_DECLINED = Card("3178", charge_decline="insufficient_funds", authentication="on_session")

CARDS = {
    "pm_card_visa": Card(),
    "pm_card_visa_debit": Card("5556"),
    "pm_card_mastercard": Card("4444", "mastercard"),
    "pm_card_amex": Card("0005", "amex"),
    "pm_card_chargeCustomerFail": Card("0341", charge_decline="generic_decline"),
    "pm_card_chargeDeclined": _declined("generic_decline", "0002"),
    "pm_card_visa_chargeDeclined": _declined("generic_decline", "0002"),
    "pm_card_chargeDeclinedInsufficientFunds": _declined("insufficient_funds", "9995"),
    "pm_card_visa_chargeDeclinedInsufficientFunds": _declined("insufficient_funds", "9995"),
    "pm_card_visa_chargeDeclinedLostCard": _declined("lost_card", "9987"),
    "pm_card_visa_chargeDeclinedStolenCard": _declined("stolen_card", "9979"),
    "pm_card_chargeDeclinedExpiredCard": _declined("expired_card", "0069"),
    "pm_card_chargeDeclinedIncorrectCvc": _declined("incorrect_cvc", "0127"),
    "pm_card_chargeDeclinedProcessingError": _declined("processing_error", "0119"),
    "pm_card_visa_chargeDeclinedVelocityLimitExceeded": _declined("card_velocity_exceeded", "6975"),
    "pm_card_authenticationRequired": Card("3184", authentication="always"),
    "pm_card_authenticationRequiredOnSetup": Card("3155", authentication="unless_set_up"),
    "pm_card_authenticationRequiredSetupForOffSession": Card("0446", authentication="on_session"),
    "pm_card_authenticationRequiredChargeDeclinedInsufficientFunds": _AUTHENTICATED_BUT_DECLINED,
    "pm_card_threeDSecure2Required": Card("3220", authentication="always"),
    "pm_card_createDispute": Card("0259", dispute_reason="fraudulent"),
    "pm_card_createDisputeProductNotReceived": Card("2685", dispute_reason="product_not_received"),
    "pm_card_pendingRefund": Card("7726", refund="pending"),
    "pm_card_refundFail": Card("5126", refund="fails"),
}

_CODES_AND_MESSAGES = {
    "authentication_required": (
        "authentication_required",
        "Your card was declined. This transaction requires authentication.",
    ),
    "insufficient_funds": ("card_declined", "Your card has insufficient funds."),
    "expired_card": ("expired_card", "Your card has expired."),
    "incorrect_cvc": ("incorrect_cvc", "Your card's security code is incorrect."),
    "processing_error": (
        "processing_error",
        "An error occurred while processing your card. Try again in a little bit.",
    ),
}


def card_of(payment_method: Resource) -> Card:
    """Return the card of a payment method, with the current behaviour of its bank."""
    card = payment_method["_card"]
    return replace(CARDS[card["name"]], **card["changes"])


def requires_authentication(payment_method: Resource, *, off_session: bool) -> bool:
    """Return whether this charge needs a 3-D Secure challenge."""
    authentication = card_of(payment_method).authentication
    if authentication == "unless_set_up":
        return not (off_session and payment_method["_set_up"])
    return authentication == "always" or (authentication == "on_session" and not off_session)


def next_action(account: Account, intent: Resource, return_url: str | None) -> Resource:
    """Return the `next_action`: a redirect to the challenge, or Stripe's SDK."""
    if return_url is None:
        return {"type": "use_stripe_sdk", "use_stripe_sdk": {"type": "three_d_secure_redirect"}}
    url = f"{account.url}/_authenticate/{intent['id']}?client_secret={intent['client_secret']}"
    return {"type": "redirect_to_url", "redirect_to_url": {"return_url": return_url, "url": url}}


def decline_error(decline_code: str) -> Resource:
    """Return Stripe's error for a decline code."""
    code, message = _CODES_AND_MESSAGES.get(decline_code, ("card_declined", "Your card was declined."))
    error = {"code": code, "decline_code": decline_code, "message": message, "type": "card_error"}
    return error | ({"param": "cvc"} if code == "incorrect_cvc" else {})
