"""Which refusal of ours a Stripe error becomes, decided here and nowhere else."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import stripe

from gateway.common.errors import DomainError
from payments.errors import BillingRefused, BillingUnavailable, CardDeclined, PaymentMethodRequired

logger = logging.getLogger(__name__)
_RETRY_AFTER_SECONDS = 5


@contextmanager
def translated() -> Iterator[None]:
    """Turn the SDK's exceptions into refusals; their texts may name customers and stay in the log."""
    try:
        yield
    except stripe.StripeError as error:
        raise refusal_of(error) from error


def refusal_of(error: stripe.StripeError) -> DomainError:
    """Return the refusal that a caller gets."""
    logger.warning("stripe: %s %s %s", type(error).__name__, error.http_status, error.code)
    if isinstance(error, stripe.CardError):
        return CardDeclined("The card was declined.", declineCode=decline_code_of(error))
    if is_passing(error):
        return BillingUnavailable(
            "Stripe does not answer. Repeat the request.", retry_after=_RETRY_AFTER_SECONDS
        )
    if "no attached payment source" in (error.user_message or ""):
        return PaymentMethodRequired("Capture a card with getSetupIntent first.")
    return BillingRefused("Stripe refused the request.", reason=error.code or "invalid_request")


def is_passing(error: stripe.StripeError) -> bool:
    """Return whether a repeat with the same key may succeed: away, busy, at fault, or our key is being replaced."""
    if isinstance(error, stripe.APIConnectionError | stripe.RateLimitError | stripe.AuthenticationError):
        return True
    return error.http_status is None or error.http_status in {409, 429} or error.http_status >= 500


def is_key_in_use(error: stripe.StripeError) -> bool:
    """Return whether Stripe is still at work on another request with the same key."""
    return (
        error.http_status == 409 and error.error is not None and error.error.code == "idempotency_key_in_use"
    )


def is_saved_fault(error: stripe.StripeError) -> bool:
    """Return whether Stripe answers a key with the 500 of its first use, which it keeps for a day."""
    headers = {name.lower(): text for name, text in (error.headers or {}).items()}
    return (error.http_status or 0) >= 500 and headers.get("idempotent-replayed") == "true"


def decline_code_of(error: stripe.CardError) -> str:
    """Return the issuer's reason, or Stripe's where the issuer gave none."""
    declined = getattr(error.error, "decline_code", None) if error.error else None
    return str(declined or error.code or "generic_decline")
