"""Why a payment request is refused. The docstrings are the public catalogue."""

from gateway.common.errors import DomainError


class StaleSnapshot(Exception):
    """A later answer is stored and ours differs: fetch again. Internal; never shown to callers."""


class BillingUnavailable(DomainError):
    """Stripe cannot be reached or is busy. What was begun is finished later, and a repeat joins it."""

    code, title, status, retryable = "billing-unavailable", "The payment provider is away", 503, True
    is_outage = True


class BillingInProgress(DomainError):
    """Another change of this user's subscription is under way. Repeat after `Retry-After` seconds."""

    code, title, status = "billing-in-progress", "Another change is under way", 409


class BillingRefused(DomainError):
    """The payment provider refuses the request for good, for `reason`; support sees more under the `requestId`."""

    code, title, status = "billing-refused", "The payment provider refuses", 422


class PaymentMethodRequired(DomainError):
    """The user has no card yet. Get a setup intent, let the wallet capture a card with it, then repeat."""

    code, title, status = "payment-method-required", "A card is needed first", 402


class CardDeclined(DomainError):
    """The card was declined; `declineCode` is Stripe's reason. Capture another card, then repeat."""

    code, title, status = "card-declined", "The card was declined", 402


class AuthenticationRequired(DomainError):
    """The card wants 3-D Secure. Let the wallet confirm with `clientSecret`, then repeat."""

    code, title, status = "authentication-required", "The card holder must confirm", 402


class CurrencyNotSupported(DomainError):
    """Subscriptions are sold in the currencies named in `supported`."""

    code, title, status = "currency-not-supported", "The currency is not supported", 400


class AmountTooSmall(DomainError):
    """The amount is below the least that a card can be charged in this currency, `minimum` in minor units."""

    code, title, status = "amount-too-small", "The amount is too small", 400


class AmountTooLarge(DomainError):
    """The amount is above what is sold, `maximum` in minor units."""

    code, title, status = "amount-too-large", "The amount is too large", 400


class CurrencyFixed(DomainError):
    """A running subscription keeps its `currency`. Cancel it first to pay in another one."""

    code, title, status = "currency-fixed", "The currency cannot change now", 409


class NoSubscription(DomainError):
    """There is no subscription to cancel, or to report on."""

    code, title, status = "no-subscription", "There is no subscription", 404


class WebhookRefused(DomainError):
    """The webhook's signature, age, mode or shape is wrong; nothing was stored."""

    code, title, status = "webhook-refused", "The webhook is not accepted", 400


class NotRefundable(DomainError):
    """No payment at Stripe, or less than was asked for, is left to return; `left` is in minor units."""

    code, title, status = "not-refundable", "There is not so much to refund", 422


class RateMissing(DomainError):
    """No payout rate is in force for the currency; staff add one, then the payment is processed again."""

    code, title, status, retryable = "rate-missing", "No payout rate is in force", 503, True


class UnknownSubscription(DomainError):
    """An invoice of a subscription that is not stored yet. The event is kept and tried again."""

    code, title, status, retryable = "unknown-subscription", "The subscription is not known yet", 503, True
