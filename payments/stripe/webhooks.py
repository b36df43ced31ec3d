"""Which webhooks are accepted."""

import json
import time
from collections.abc import Sequence
from typing import Any

import stripe

from payments.errors import WebhookRefused
from payments.stripe.reading import required_moment
from payments.stripe.states import ReceivedEvent

_OLDEST_SECONDS = 300
# Clocks differ a little; a timestamp further ahead would keep a stolen webhook good for longer.
_NEWEST_SECONDS = 60
_TIMESTAMP_DIGITS = 12


def read(*, body: bytes, signature: str, secrets: Sequence[str], is_live: bool) -> ReceivedEvent:
    """
    Return the event of a webhook that one of our secrets signed within the last five minutes.

    Raises:
        WebhookRefused: it was not, it is of the other mode, or it is no event.
    """
    _verify(body, signature, secrets)
    event = event_of(_parse(body))
    if event.is_live != is_live:
        raise WebhookRefused("The event is of the other mode of Stripe.")
    return event


def event_of(parsed: dict[str, Any]) -> ReceivedEvent:
    """
    Return what an event object says of itself.

    Raises:
        WebhookRefused: a member is missing or of the wrong kind.
    """
    try:
        return ReceivedEvent(
            event_id=_text(parsed["id"]),
            type=_text(parsed["type"]),
            api_version=str(parsed.get("api_version") or ""),
            object_id=_text(parsed["data"]["object"]["id"]),
            created_at=required_moment(int(parsed["created"])),
            is_live=bool(parsed["livemode"]),
        )
    except (KeyError, TypeError, ValueError, OverflowError, OSError) as error:
        raise WebhookRefused("The body is no snapshot event of Stripe.") from error


def _verify(body: bytes, signature: str, secrets: Sequence[str]) -> None:
    timestamp = _timestamp(signature)
    if timestamp > time.time() + _NEWEST_SECONDS:
        raise WebhookRefused("The signature is from the future.")
    for secret in secrets:
        try:
            stripe.WebhookSignature.verify_header(body.decode(), signature, secret, tolerance=_OLDEST_SECONDS)
        except (stripe.SignatureVerificationError, ValueError):
            continue
        return
    raise WebhookRefused("No secret of ours made this signature in the last five minutes.")


def _timestamp(signature: str) -> int:
    text = next((part[2:] for part in signature.split(",") if part.startswith("t=")), "")
    if not signature.isascii() or not text.isdigit() or len(text) > _TIMESTAMP_DIGITS:
        raise WebhookRefused("The signature has no time.")
    return int(text)


def _parse(body: bytes) -> dict[str, Any]:
    try:
        parsed = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise WebhookRefused("The body is not JSON.") from error
    if not isinstance(parsed, dict) or parsed.get("object") != "event":
        raise WebhookRefused("The body is no event.")
    return parsed


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value or len(value) > 255:
        raise ValueError("no text")
    return value
