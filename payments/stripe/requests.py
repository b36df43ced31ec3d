"""
Requests to Stripe. Only this module translates the SDK's errors, and makes sure that a command is executed once.

A command has an idempotency key, and a function that finds the object it created, in case Stripe's response was lost.
"""

import logging
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import stripe

from gateway.common import metrics
from gateway.common.errors import DomainError
from gateway.common.guards import CircuitOpen, Guard
from payments.errors import (
    AddressRequired,
    BillingRefused,
    BillingUnavailable,
    CardDeclined,
    CurrencyFixed,
    PaymentMethodRequired,
)

logger = logging.getLogger(__name__)
_RETRY_AFTER_SECONDS = 5
# A refused key waits for a person.
_KEY_RETRY_AFTER_SECONDS = 3600
# How many keys to try while Stripe replays the failure that it saved for the previous key.
_MAX_KEYS = 3
# Only failures that took longer than this count for the circuit breaker, because only they occupied a thread.
_SLOW_SECONDS = 0.5
_OTHER_CURRENCY = re.compile(r"cannot combine currencies .* currency ([a-z]{3})\b")
_MISSING_PERMISSION = re.compile(r"\brak_\w+")
# What Stripe's reasons mean to the person who can act.
_WORDS = {
    "amount_too_large": "The amount is above the maximum that Stripe charges. Choose a smaller one.",
    "amount_too_small": "In the currency of the operator's account, the amount is below Stripe's minimum charge. "
    "Choose a larger one.",
    "charge_already_refunded": "The payment was refunded already.",
    "charge_disputed": "The payment is disputed: the bank decides about the money.",
    "resource_missing": "Stripe does not know the object any more.",
}
# Only the bank may tell its customer of these, so that a thief learns nothing (docs.stripe.com/declines/codes).
_FOR_THE_BANK_TO_TELL = frozenset({"fraudulent", "lost_card", "merchant_blacklist", "stolen_card"})
_DECLINED = "generic_decline"
# How long a caller waits for a free place. Some responses of a healthy Stripe take seconds.
PATIENCE_SECONDS = 3.0
# A connection that was idle for longer is not used again.
IDLE_SECONDS = 5.0
# Pause between two attempts while a request with the same key is in progress.
_PAUSE_SECONDS = 0.25


class GuardedClient(stripe.RequestsClient):
    """The SDK's HTTP client with a bulkhead and a circuit breaker: a stalled Stripe cannot occupy all threads."""

    def __init__(self, *, timeout_seconds: int, places: int) -> None:
        super().__init__(timeout=timeout_seconds)
        self._guard = Guard(places=places, wait_seconds=PATIENCE_SECONDS)
        self._thread = threading.local()

    def request(self, *arguments: Any, **options: Any) -> Any:
        """
        Send one request.

        Raises:
            APIConnectionError: Stripe did not respond, or the circuit is open.
        """
        started = time.monotonic()
        try:
            with self._guard.place(), metrics.STRIPE_REQUEST.timed():
                if started - getattr(self._thread, "used_at", started) > IDLE_SECONDS:
                    # Ends the thread's connection, which a firewall may have forgotten.
                    self.close()  # type: ignore[no-untyped-call]
                return super().request(*arguments, **options)
        except CircuitOpen as error:
            message = "Stripe did not respond to the latest requests."
            raise stripe.APIConnectionError(message, should_retry=False) from error  # type: ignore[no-untyped-call]
        except stripe.APIConnectionError:
            # A refused or broken connection occupies no thread for long, and the next request may succeed.
            if time.monotonic() - started > _SLOW_SECONDS:
                self._guard.failed()
            raise
        finally:
            self._thread.used_at = time.monotonic()


@contextmanager
def translated_errors() -> Iterator[None]:
    """Translate the SDK's exceptions into ours, without their texts, which may name customers."""
    try:
        yield
    except stripe.StripeError as error:
        raise to_domain_error(error) from error


def to_domain_error(error: stripe.StripeError) -> DomainError:
    """Return our error, with the next step in words where Stripe's error names one."""
    logger.warning("stripe: %s %s %s", type(error).__name__, error.http_status, error.code)
    if isinstance(error, stripe.CardError):
        return CardDeclined("The card was declined.", declineCode=_decline_code(error))
    if isinstance(error, stripe.AuthenticationError | stripe.PermissionError):
        return _key_error(error)
    if _is_transient(error):
        return BillingUnavailable(
            "Stripe does not respond. Repeat the request.", retry_after=_RETRY_AFTER_SECONDS
        )
    return _refusal(error)


def _refusal(error: stripe.StripeError) -> DomainError:
    message, reason = error.user_message or "", error.code or "invalid_request"
    if "no attached payment source" in message:
        return PaymentMethodRequired("Save a card with getSetupIntent first.")
    if other := _OTHER_CURRENCY.search(message):
        return CurrencyFixed.to(other[1])
    if reason == "customer_tax_location_invalid":
        detail = "Tax depends on your address, and Stripe has none that it knows. Save a card with your full address."
        return AddressRequired(detail, reason=reason)
    return BillingRefused(_WORDS.get(reason, "Stripe refused the request."), reason=reason)


def _key_error(error: stripe.StripeError) -> DomainError:
    """Return the error of a key that is refused, or lacks a permission; only the operator can act."""
    if isinstance(error, stripe.AuthenticationError):
        code = error.error.code if error.error is not None else None
        logger.error("stripe: STRIPE_SECRET_KEY is refused (%s): replace it", code or "invalid")
        detail = (
            "Stripe does not accept this service's key. Payments wait until the operator has replaced it."
        )
        return BillingUnavailable(detail, retry_after=_KEY_RETRY_AFTER_SECONDS)
    missing = _MISSING_PERMISSION.search(error.user_message or "")
    logger.error("stripe: STRIPE_SECRET_KEY lacks a permission: %s", missing[0] if missing else "unnamed")
    detail = "This service's key at Stripe lacks a permission, so only the operator can make this possible."
    return BillingRefused(detail, reason=missing[0] if missing else "permission")


def idempotent_request(
    *,
    key: str,
    send: Callable[[dict[str, str]], str],
    find: Callable[[], str | None],
    patience_seconds: int,
) -> str:
    """
    Send a command with its key and return the id of the created object; if Stripe failed, `find` looks for it.

    `send` gets the SDK's options with the key. For a day, Stripe replays a 500 for the same key. If it does, and no
    object was created, the command is sent again with a key derived from the first. If a request with the same key is
    in progress at Stripe, this waits for its end for at most `patience_seconds`.

    Raises:
        BillingUnavailable: Stripe is unreachable or keeps failing; the same command may be sent again.
        DomainError: Stripe refused the command.
    """
    deadline = time.monotonic() + patience_seconds
    for number in range(_MAX_KEYS):
        try:
            return _send_when_key_is_free(send, key if number == 0 else f"{key}:{number}", deadline)
        except stripe.StripeError as error:
            if (error.http_status or 0) < 500:
                raise to_domain_error(error) from error
            with translated_errors():
                made = find()
            if made is not None:
                return made
            if not _is_replayed_failure(error):
                raise to_domain_error(error) from error
    raise BillingUnavailable("Stripe keeps failing. Retry later.", retry_after=60)


def is_made_by(row: Any, key: str) -> bool:
    """Return whether the command with this key created the object, by the key in the object's metadata."""
    metadata = getattr(row, "metadata", None)
    return metadata is not None and "operation" in metadata and metadata["operation"] == key


def _send_when_key_is_free(send: Callable[[dict[str, str]], str], key: str, deadline: float) -> str:
    while True:
        try:
            return send({"idempotency_key": key})
        except stripe.StripeError as error:
            if not _is_key_in_use(error) or time.monotonic() > deadline:
                raise
        time.sleep(_PAUSE_SECONDS)


def _is_transient(error: stripe.StripeError) -> bool:
    """Return whether a retry may succeed: Stripe is unreachable, busy or failing."""
    if isinstance(error, stripe.APIConnectionError | stripe.RateLimitError):
        return True
    return error.http_status is None or error.http_status in {409, 429} or error.http_status >= 500


def _is_key_in_use(error: stripe.StripeError) -> bool:
    return (
        error.http_status == 409 and error.error is not None and error.error.code == "idempotency_key_in_use"
    )


def _is_replayed_failure(error: stripe.StripeError) -> bool:
    """Return whether Stripe replayed the 500 of the key's first use, which it saves for a day."""
    headers = {name.lower(): text for name, text in (error.headers or {}).items()}
    return (error.http_status or 0) >= 500 and headers.get("idempotent-replayed") == "true"


def _decline_code(error: stripe.CardError) -> str:
    code = getattr(error.error, "decline_code", None) if error.error else None
    return told(code or error.code)


def told(code: str | None) -> str:
    """Return the decline code that the payer may learn."""
    return _DECLINED if not code or code in _FOR_THE_BANK_TO_TELL else str(code)
