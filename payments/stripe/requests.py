"""
One request to Stripe: its errors become ours here and nowhere else, and a command is carried out once.

A command has an idempotency key, and a way to find what it made in case Stripe failed.
"""

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import stripe

from gateway.common import metrics
from gateway.common.errors import DomainError
from gateway.common.guards import CircuitOpen, Guard
from payments.errors import BillingRefused, BillingUnavailable, CardDeclined, PaymentMethodRequired

logger = logging.getLogger(__name__)
_RETRY_AFTER_SECONDS = 5
# How many keys are tried where Stripe answers with the saved failure of the one before.
_MAX_KEYS = 3
# A failure that took longer kept a thread waiting.
_SLOW_SECONDS = 0.5
# Some answers of Stripe take seconds when all is well; so long a caller waits for others to get theirs.
PATIENCE_SECONDS = 3.0
# Between two tries while an equal request is running; the SDK may have paused as well.
_PAUSE_SECONDS = 0.25


class GuardedClient(stripe.RequestsClient):
    """The SDK's HTTP client, which keeps Stripe from taking all threads while it stands still."""

    def __init__(self, *, timeout_seconds: int, places: int) -> None:
        super().__init__(timeout=timeout_seconds)
        self._guard = Guard(places=places, patience_seconds=PATIENCE_SECONDS)

    def request(self, *arguments: Any, **options: Any) -> Any:
        """
        Send one request.

        Raises:
            APIConnectionError: Stripe did not answer, or it is left alone for now.
        """
        started = time.monotonic()
        try:
            with self._guard.place(), metrics.STRIPE_REQUEST.timed():
                return super().request(*arguments, **options)
        except CircuitOpen as error:
            message = "Stripe has not answered lately."
            raise stripe.APIConnectionError(message, should_retry=False) from error  # type: ignore[no-untyped-call]
        except stripe.APIConnectionError:
            # A connection that is refused or breaks off takes no thread's time, and the next one may hold.
            if time.monotonic() - started > _SLOW_SECONDS:
                self._guard.failed()
            raise


@contextmanager
def translated_errors() -> Iterator[None]:
    """Turn the SDK's exceptions into ours; their texts may name customers and stay in the log."""
    try:
        yield
    except stripe.StripeError as error:
        raise to_domain_error(error) from error


def to_domain_error(error: stripe.StripeError) -> DomainError:
    logger.warning("stripe: %s %s %s", type(error).__name__, error.http_status, error.code)
    if isinstance(error, stripe.CardError):
        return CardDeclined("The card was declined.", declineCode=_decline_code(error))
    if _is_transient(error):
        return BillingUnavailable(
            "Stripe does not answer. Repeat the request.", retry_after=_RETRY_AFTER_SECONDS
        )
    if "no attached payment source" in (error.user_message or ""):
        return PaymentMethodRequired("Capture a card with getSetupIntent first.")
    return BillingRefused("Stripe refused the request.", reason=error.code or "invalid_request")


def idempotent_request(
    *,
    key: str,
    send: Callable[[dict[str, str]], str],
    find: Callable[[], str | None],
    patience_seconds: int,
) -> str:
    """
    Send a command under its key and return the id of what was made; where Stripe failed, look for it.

    `send` gets the SDK's options with the key. Stripe keeps a 500 for the key for a day. Once it
    replays one and nothing was made, the command is sent again under a key derived from the first.
    While Stripe works on an equal request, its end is awaited for at most `patience_seconds`.

    Raises:
        BillingUnavailable: Stripe is unreachable or keeps failing; the same command may be sent again.
        DomainError: Stripe refuses it.
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
    raise BillingUnavailable("Stripe keeps failing. Repeat the request.", retry_after=60)


def is_made_by(row: Any, key: str) -> bool:
    """Return whether a command of this key made the customer or subscription: our metadata names it."""
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
    """Return whether a repeat with the same key may succeed: Stripe is away, busy or failing, or our key changes."""
    if isinstance(error, stripe.APIConnectionError | stripe.RateLimitError | stripe.AuthenticationError):
        return True
    return error.http_status is None or error.http_status in {409, 429} or error.http_status >= 500


def _is_key_in_use(error: stripe.StripeError) -> bool:
    return (
        error.http_status == 409 and error.error is not None and error.error.code == "idempotency_key_in_use"
    )


def _is_replayed_failure(error: stripe.StripeError) -> bool:
    """Return whether Stripe answers a key with the 500 of its first use, which it keeps for a day."""
    headers = {name.lower(): text for name, text in (error.headers or {}).items()}
    return (error.http_status or 0) >= 500 and headers.get("idempotent-replayed") == "true"


def _decline_code(error: stripe.CardError) -> str:
    code = getattr(error.error, "decline_code", None) if error.error else None
    return str(code or error.code or "generic_decline")
