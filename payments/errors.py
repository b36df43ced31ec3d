"""The errors of payment requests. Their docstrings are the public catalogue of problems."""

from gateway.common.errors import DomainError


def is_lasting(error: DomainError) -> bool:
    """Return whether the same request would be refused again."""
    return not error.retryable and error.retry_after is None


def reason_of(error: DomainError) -> str:
    """Return Stripe's reason for a refusal, else the error's code."""
    return str(error.members.get("reason", error.code))


class StaleSnapshot(Exception):
    """A newer response of Stripe is stored and ours differs: fetch again. Internal; never shown to callers."""


class BillingUnavailable(DomainError):
    """Stripe is unreachable or busy. The service completes a started change later; a retry joins it."""

    code, title, status, retryable = "billing-unavailable", "The payment provider is unavailable", 503, True
    is_outage = True


class BillingInProgress(DomainError):
    """Another change of this user's subscription is in progress. Retry after `Retry-After` seconds."""

    code, title, status = "billing-in-progress", "Another change is in progress", 409


class PaymentProcessing(DomainError):
    """
    The bank has not decided about the payment yet; some banks take a day or two. Do not pay again.

    A repeat of the same request returns the outcome once the bank has decided. Until then, no other purchase begins.
    """

    code, title, status = "payment-processing", "The bank is processing the payment", 409

    def __init__(self) -> None:
        super().__init__(
            "The bank has not decided about the payment yet. Do not pay again.", retry_after=3600
        )


class BillingRefused(DomainError):
    """The payment provider refused the request for `reason`; a retry will not help. Give support the `requestId`."""

    code, title, status = "billing-refused", "The payment provider refused the request", 422


class AddressRequired(BillingRefused):
    """
    Tax depends on the payer's address, and Stripe has none, or does not know the place (`reason`). Nothing was charged.

    Send the user to the page of `cardPage`, which asks for a card and the address. Then repeat the request; a purchase
    needs a new `Idempotency-Key`.
    """

    code, title = "address-required", "Your address is required"


class CustomerBalanceLeft(DomainError):
    """
    Stripe keeps `balance`, in minor units of `currency`, for the user, and would mix it with the payment.

    A credit is negative: it pays the next months of a subscription, but gives no credits, because it is no new money.
    A debt would make the purchase cost more than was confirmed. Nothing was charged. The operator's support can settle
    it.
    """

    code, title, status = "customer-balance", "Stripe keeps a balance for you", 409


class PaymentMethodRequired(DomainError):
    """The user has no card. Get a setup intent, let the wallet capture a card with it, then retry."""

    code, title, status = "payment-method-required", "A card is required", 402


class CardDeclined(DomainError):
    """
    The card was declined; `declineCode` is Stripe's reason, or `generic_decline`. Save another card, then retry.

    That stands for `fraudulent`, `lost_card`, `merchant_blacklist` and `stolen_card`, of which only the bank may tell.
    """

    code, title, status = "card-declined", "The card was declined", 402


class AuthenticationRequired(DomainError):
    """The card requires 3-D Secure. Let the wallet confirm the payment with `clientSecret`, then retry."""

    code, title, status = "authentication-required", "The card holder must confirm the payment", 402


class CurrencyNotSupported(DomainError):
    """The currency is not one of those in `supported`."""

    code, title, status = "currency-not-supported", "The currency is not supported", 400


class AmountTooSmall(DomainError):
    """The amount is below the minimum charge of the currency, `minimum` in minor units."""

    code, title, status = "amount-too-small", "The amount is too small", 400


class AmountTooLarge(DomainError):
    """The amount is above the maximum, `maximum` in minor units."""

    code, title, status = "amount-too-large", "The amount is too large", 400


class CurrencyFixed(BillingRefused):
    """
    Stripe charges a customer in one currency at a time: `currency`, that of the live subscription.

    Pay in it, or cancel the subscription to pay in another one.
    """

    code, title, status = "currency-fixed", "The currency cannot change now", 409

    @classmethod
    def to(cls, currency: str) -> "CurrencyFixed":
        """Return the error with the next step in words."""
        name = currency.upper()
        detail = (
            f"You pay in {name} while you have a subscription in {name}. Choose {name}, or cancel it first."
        )
        return cls(detail, currency=currency)


class NoSubscription(DomainError):
    """The user has no subscription."""

    code, title, status = "no-subscription", "There is no subscription", 404


class UnknownPack(DomainError):
    """No pack with this id is offered. List the packs again."""

    code, title, status = "unknown-pack", "The pack does not exist", 404


class PurchaseDiffers(DomainError):
    """The `Idempotency-Key` was used for another purchase. Use a new key for each purchase."""

    code, title, status = "purchase-differs", "The key belongs to another purchase", 409


class PurchaseClosed(DomainError):
    """The purchase was voided: refused, not paid within a day, or replaced. Use a new `Idempotency-Key`."""

    code, title, status = "purchase-closed", "The purchase was voided", 409


class UnknownPurchase(DomainError):
    """You have made no purchase with this id."""

    code, title, status = "unknown-purchase", "The purchase does not exist", 404


class UndoRefused(DomainError):
    """
    The purchase cannot be undone, for this `reason`. The operator's support can still refund it.

    `too-late`: its time is over. `spent`: fewer credits are available than it gave. `returned`: its money was returned
    or disputed. `too-often`: three purchases were undone within 30 days. `not-undoable`: it was not paid by card, was
    bought automatically, or was for a sponsor.
    """

    code, title, status = "undo-refused", "The purchase cannot be undone", 409

    def __init__(self, detail: str, *, reason: str) -> None:
        super().__init__(detail, reason=reason)


class WebhookRefused(DomainError):
    """The webhook's signature, age or shape is wrong. It was not stored."""

    code, title, status = "webhook-refused", "The webhook was refused", 400


class OtherMode(DomainError):
    """The event is of Stripe's other mode, live or test. It is kept, and retried once key and endpoint match."""

    code, title, status = "other-mode", "The event is of Stripe's other mode", 409


class NotRefundable(DomainError):
    """The amount exceeds the amount left to refund, `left` in minor units, or Stripe has no payment to refund."""

    code, title, status = "not-refundable", "The amount cannot be refunded", 422


class RateMissing(DomainError):
    """The currency has no payout rate in force. Once staff add one, the payment is processed again."""

    code, title, status, retryable = "rate-missing", "No payout rate is in force", 503, True


class UnknownSubscription(DomainError):
    """The invoice's subscription is not stored yet. The event is kept and retried."""

    code, title, status, retryable = "unknown-subscription", "The subscription is not known yet", 503, True
