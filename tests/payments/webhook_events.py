"""Webhook events: signed as Stripe signs, stored as the webhook path does, processed as the worker does."""

import json
import time
from collections.abc import Iterable
from datetime import datetime
from typing import Any

import stripe
from django.conf import settings

from payments.models import StripeEvent
from payments.services import events
from payments.services.snapshots import EVENT_TYPES
from tests.payments.stripe_accounts import DoubleAccount


def signature(body: bytes, *, secret: str | None = None, at: float | None = None) -> str:
    """Return the header that Stripe sends with the body, signed with the first of our secrets just now."""
    timestamp = int(time.time() if at is None else at)
    header: str = stripe.WebhookSignature.generate_signature_header(
        body.decode(), secret or settings.STRIPE_WEBHOOK_SECRETS[0], timestamp=timestamp
    )
    return header


def webhook_body(event: Any) -> bytes:
    """Return an event of the SDK as it stands in a webhook."""
    return json.dumps(event.to_dict(), default=str).encode()


def receive_event(body: bytes, *, now: datetime) -> StripeEvent:
    """Send one webhook and return its row."""
    events.receive(body=body, signature=signature(body), now=now)
    return StripeEvent.objects.get(stripe_event_id=json.loads(body)["id"])


def process_events(bodies: Iterable[bytes], *, now: datetime) -> int:
    """Send webhooks and process each at once; return how many were applied."""
    return sum(events.process(event_id=receive_event(body, now=now).pk, now=now) for body in bodies)


def process_all_events(double: DoubleAccount) -> None:
    """Process every new event of the types that our webhook endpoint gets, and those that this leads to."""
    processed = StripeEvent.objects.filter(status=StripeEvent.Status.PROCESSED)
    sent = set(processed.values_list("stripe_event_id", flat=True))
    while new := [event for event in double.webhooks(*EVENT_TYPES) if event["id"] not in sent]:
        process_events([json.dumps(event).encode() for event in new], now=double.now())
        sent |= {event["id"] for event in new}
