"""The webhook's inbox: what Stripe signed is stored, whatever becomes of it later."""

from datetime import datetime

from django.db import transaction

from gateway.common.enqueue import enqueue_on_commit
from payments.models import StripeEvent
from payments.stripe.client import get_billing_client
from payments.stripe.states import ReceivedEvent


def receive(*, body: bytes, signature: str, now: datetime) -> bool:
    """
    Store a webhook and ring the worker; False where the event is stored already.

    Raises:
        WebhookRefused: it is not what Stripe sent to us just now; nothing is stored.
    """
    event = get_billing_client().read_webhook(body=body, signature=signature)
    return store(event=event, body=body, now=now)


@transaction.atomic(durable=True)
def store(*, event: ReceivedEvent, body: bytes, now: datetime) -> bool:
    """Insert the event by its id; a conflict means that we have it."""
    content = {
        "type": event.type,
        "api_version": event.api_version,
        "object_id": event.object_id,
        "happened_at": event.created_at,
        "raw_body": body,
        "received_at": now,
        "next_attempt_at": now,
    }
    stored, is_new = StripeEvent.objects.get_or_create(stripe_event_id=event.event_id, defaults=content)
    if stored.status != StripeEvent.Status.PROCESSED:
        enqueue_on_commit("payments.process_event", event_id=stored.pk)
    return is_new
