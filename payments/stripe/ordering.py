"""
Orders that are carried out once, whatever becomes of their answers.

Each has an idempotency key, and says how to find what it made in case Stripe failed.
"""

import time
from collections.abc import Callable
from typing import Any

import stripe

from payments.errors import BillingUnavailable
from payments.stripe.faults import is_key_in_use, is_saved_fault, refusal_of, translated

# How many keys are tried where Stripe answers with the saved fault of the one before.
_KEYS = 3
# Between two looks at whether an equal request has ended; the SDK may have paused as well.
_PAUSE_SECONDS = 0.25


def once(
    *, key: str, order: Callable[[str], str], find: Callable[[], str | None], patience_seconds: int
) -> str:
    """
    Give the order under its key and return the id of what was made; where Stripe failed, look for it.

    Stripe keeps a 500 for the key for a day. Once it replays one and nothing was
    made, the order is given again under a key derived from the first. Where an equal request
    is at Stripe right now, its end is waited for, from now on `patience_seconds`.

    Raises:
        BillingUnavailable: Stripe is away or keeps failing; the same order may be given again.
        DomainError: Stripe refuses it.
    """
    gives_up_at = time.monotonic() + patience_seconds
    for number in range(_KEYS):
        try:
            return _given(order, key if number == 0 else f"{key}:{number}", gives_up_at)
        except stripe.StripeError as error:
            if (error.http_status or 0) < 500:
                raise refusal_of(error) from error
            with translated():
                made = find()
            if made is not None:
                return made
            if not is_saved_fault(error):
                raise refusal_of(error) from error
    raise BillingUnavailable("Stripe keeps failing. Repeat the request.", retry_after=60)


def _given(order: Callable[[str], str], key: str, gives_up_at: float) -> str:
    while True:
        try:
            return order(key)
        except stripe.StripeError as error:
            if not is_key_in_use(error) or time.monotonic() > gives_up_at:
                raise
        time.sleep(_PAUSE_SECONDS)


def keyed(key: str) -> dict[str, str]:
    """Return the options of a request that carries the key."""
    return {"idempotency_key": key}


def is_made_by(row: Any, key: str) -> bool:
    """Return whether an order of this key made the customer or subscription: our metadata names it."""
    metadata = getattr(row, "metadata", None)
    return metadata is not None and "operation" in metadata and metadata["operation"] == key
