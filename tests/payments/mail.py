"""Webhooks: signed as Stripe signs, stored as the webhook path does, applied as the worker does."""

import json
import time
from collections.abc import Iterable
from datetime import datetime
from typing import Any

import stripe
from django.conf import settings

from payments.models import StripeEvent
from payments.services import events
from tests.payments.worlds import DoubleWorld


def signature(body: bytes, *, secret: str | None = None, at: float | None = None) -> str:
    """Return the header that Stripe sends with the body, signed with the first of our secrets just now."""
    moment = int(time.time() if at is None else at)
    header: str = stripe.WebhookSignature.generate_signature_header(
        body.decode(), secret or settings.STRIPE_WEBHOOK_SECRETS[0], timestamp=moment
    )
    return header


def body_of(event: Any) -> bytes:
    """Return an event of the SDK as it stands in a webhook."""
    return json.dumps(event.to_dict(), default=str).encode()


def store(body: bytes, *, now: datetime) -> StripeEvent:
    """Deliver one webhook and return its row."""
    events.receive(body=body, signature=signature(body), now=now)
    return StripeEvent.objects.get(stripe_event_id=json.loads(body)["id"])


def deliver(bodies: Iterable[bytes], *, now: datetime) -> int:
    """Deliver webhooks and process each at once; return how many were applied."""
    return sum(events.process(event_id=store(body, now=now).pk, now=now) for body in bodies)


def deliver_all(double: DoubleWorld) -> int:
    """Deliver everything that has happened at the double, and what that leads to; return how many were applied."""
    told: set[str] = set()
    applied = 0
    while new := [event for event in double.events() if event.id not in told]:
        applied += deliver([body_of(event) for event in new], now=double.now())
        told |= {event.id for event in new}
    return applied
