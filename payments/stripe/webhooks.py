"""Verification of webhooks: the signature, its age, and the form of an event."""

import json
import time
from collections.abc import Sequence
from typing import Any

import stripe

from payments.errors import WebhookRefused
from payments.stripe.client import ReceivedEvent
from payments.stripe.objects import received_event

_MAX_AGE_SECONDS = 300
# Allows for clock skew. A timestamp further in the future would extend the time in which a webhook can be replayed.
_MAX_CLOCK_SKEW_SECONDS = 60
_TIMESTAMP_DIGITS = 12


def read_webhook(*, body: bytes, signature: str, secrets: Sequence[str]) -> ReceivedEvent | None:
    """
    Return the event of a webhook that was signed with one of our secrets within the last five minutes.

    None for an event that the service does not use: one about an object without an id, such as a balance or an upcoming
    invoice, or a thin event of Stripe's v2 API. Stripe would disable an endpoint that refuses such events.

    Raises:
        WebhookRefused: the signature is wrong or too old, or the body is not an event.
    """
    _verify(body, signature, secrets)
    parsed = _parse(body)
    if parsed["object"] != "event" or not _is_about_an_id(parsed):
        return None
    return received_event(parsed)


def _verify(body: bytes, signature: str, secrets: Sequence[str]) -> None:
    if _timestamp(signature) > time.time() + _MAX_CLOCK_SKEW_SECONDS:
        raise WebhookRefused("The signature is from the future.")
    for secret in secrets:
        try:
            stripe.WebhookSignature.verify_header(
                body.decode(), signature, secret, tolerance=_MAX_AGE_SECONDS
            )
        except (stripe.SignatureVerificationError, ValueError):
            continue
        return
    raise WebhookRefused("The signature is wrong, or older than five minutes.")


def _timestamp(signature: str) -> int:
    text = next((part[2:] for part in signature.split(",") if part.startswith("t=")), "")
    if not signature.isascii() or not text.isdigit() or len(text) > _TIMESTAMP_DIGITS:
        raise WebhookRefused("The signature has no valid timestamp.")
    return int(text)


def _parse(body: bytes) -> dict[str, Any]:
    try:
        parsed = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise WebhookRefused("The body is not JSON.") from error
    if not isinstance(parsed, dict) or parsed.get("object") not in {"event", "v2.core.event"}:
        raise WebhookRefused("The body is not an event.")
    return parsed


def _is_about_an_id(event: dict[str, Any]) -> bool:
    """Return whether the event's object has an id; True for a malformed event without an object, refused elsewhere."""
    data = event.get("data")
    about = data.get("object") if isinstance(data, dict) else None
    return not isinstance(about, dict) or "id" in about or "object" not in about
