"""
From Stripe's objects to our states. Fields live where API version 2026-10-28 keeps them.

Which webhooks are accepted.
"""

import json
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import stripe

from payments.errors import WebhookRefused
from payments.stripe.states import CustomerState, InvoiceState, ReceivedEvent, SubscriptionState


def moment(timestamp: int | None) -> datetime | None:
    """Return unix seconds as a time."""
    return None if timestamp is None else datetime.fromtimestamp(timestamp, UTC)


def required_moment(timestamp: int) -> datetime:
    """Return unix seconds as a time."""
    return datetime.fromtimestamp(timestamp, UTC)


def reference(value: Any) -> str:
    """Return the id of an object that Stripe gives as its id, expanded, or not at all."""
    if value is None:
        return ""
    return value if isinstance(value, str) else str(value.id)


def customer_state(found: Any) -> CustomerState:
    """Read a customer; our metadata names whom it was made for."""
    metadata = found.metadata.to_dict() if found.metadata else {}
    return CustomerState(
        customer_id=found.id,
        user_id=metadata.get("user", ""),
        profile_address=metadata.get("address", ""),
        created_at=required_moment(found.created),
        is_live=bool(found.livemode),
    )


def subscription_state(found: Any, *, client_secret: str = "", decline_code: str = "") -> SubscriptionState:
    """Read a subscription; its period is on its one item."""
    item = found["items"].data[0]
    return SubscriptionState(
        subscription_id=found.id,
        customer_id=reference(found.customer),
        item_id=item.id,
        status=found.status,
        # Tiered and metered prices, which others on the same account may sell, have no amount.
        amount_minor=int(item.price.unit_amount or 0),
        currency=found.currency,
        current_period_start=required_moment(item.current_period_start),
        current_period_end=required_moment(item.current_period_end),
        cancels_at_period_end=bool(found.cancel_at_period_end),
        ended_at=moment(found.ended_at),
        latest_invoice_id=reference(found.latest_invoice),
        payment_client_secret=client_secret,
        decline_code=decline_code,
    )


def invoice_state(found: Any) -> InvoiceState:
    """Read an invoice; its parent names the subscription, its line the period, its payments the money."""
    period = _period(found)
    return InvoiceState(
        invoice_id=found.id,
        customer_id=reference(found.customer),
        subscription_id=_subscription(found),
        status=found.status or "",
        billing_reason=found.billing_reason or "",
        currency=found.currency,
        collected_minor=max(0, found.amount_paid - (getattr(found, "amount_paid_off_stripe", None) or 0)),
        period_start=moment(period.start) if period else None,
        period_end=moment(period.end) if period else None,
        payment_intent_id=payment_intent_of_invoice(found),
        paid_at=moment(found.status_transitions.paid_at),
        is_live=bool(found.livemode),
    )


def _subscription(found: Any) -> str:
    parent = getattr(found, "parent", None)
    if parent is None or parent.type != "subscription_details":
        return ""
    return reference(parent.subscription_details.subscription)


def _period(found: Any) -> Any:
    """Return the period of the latest line that bills a subscription item and is no proration."""
    periods = []
    for line in found.lines.data:
        details = getattr(getattr(line, "parent", None), "subscription_item_details", None)
        if details is not None and not details.proration:
            periods.append(line.period)
    return max(periods, key=lambda period: int(period.end), default=None)


def payment_intent_of_invoice(found: Any) -> str:
    """Return the payment intent that paid the invoice, or the one that is to pay it."""
    payments = getattr(found, "payments", None)
    rows = sorted(payments.data, key=lambda row: row.status != "paid") if payments else []
    intents = [reference(getattr(row.payment, "payment_intent", None)) for row in rows]
    return next((intent for intent in intents if intent), "")


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
