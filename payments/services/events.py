"""
The inbox of Stripe's events: an event is stored first, then applied.

Each event is applied and marked processed in one transaction, or retried later.
"""

import json
import logging
import time
from datetime import datetime, timedelta
from functools import partial

from django.db import transaction
from django.db.models import F, QuerySet

from gateway.common.errors import DomainError
from gateway.common.leases import try_lease
from gateway.common.tasks import OutOfTime, Sweep, enqueue_on_commit
from payments.errors import BillingUnavailable, OtherMode
from payments.models import StripeEvent
from payments.services.payouts import is_of_our_mode
from payments.services.snapshots import EVENT_TYPES, Snapshot, fetch_and_apply, fetch_snapshot
from payments.stripe import get_billing_client
from payments.stripe.client import ReceivedEvent

logger = logging.getLogger(__name__)
_Status = StripeEvent.Status
# Exponential backoff: 10 s, 20 s, 40 s … up to six hours.
_FIRST_WAIT, _LONGEST_WAIT = timedelta(seconds=10), timedelta(hours=6)
# A sweep starts no further event after this time; a task may take two minutes.
SWEEP_SECONDS = 30.0
# Stripe keeps events for 30 days.
_EVENT_RETENTION = timedelta(days=29)


def receive(*, body: bytes, signature: str, now: datetime) -> None:
    """
    Store a webhook's event, unless it is already stored or the service does not use it; enqueue it unless processed.

    Raises:
        WebhookRefused: Stripe did not send the webhook just now; nothing is stored.
    """
    event = get_billing_client().read_webhook(body=body, signature=signature)
    if event is not None:
        store(event=event, body=body, now=now)


def fetch_undelivered(*, now: datetime) -> int:
    """Store events that Stripe could not deliver to us; return how many were new."""
    undelivered = get_billing_client().undelivered_events(since=now - _EVENT_RETENTION, types=EVENT_TYPES)
    stored, sweep = 0, Sweep("event")
    for event, body in undelivered:
        with sweep.item(event.event_id):
            stored += store(event=event, body=body, now=now)
    sweep.finish()
    return stored


@transaction.atomic(durable=True)
def store(*, event: ReceivedEvent, body: bytes, now: datetime) -> bool:
    """Insert the event unless it is stored, and enqueue it unless it is processed; return whether it was new."""
    fields = {
        "type": event.type,
        "api_version": event.api_version,
        "object_id": event.object_id,
        "happened_at": event.created_at,
        "raw_body": body,
        "received_at": now,
        "next_attempt_at": now,
    }
    if event.account:
        # Of a connected account, whose objects our key cannot read, so there is nothing to apply.
        done = {"status": _Status.PROCESSED, "outcome": StripeEvent.Outcome.NOT_OURS, "processed_at": now}
        fields.update(done)
    stored, is_new = StripeEvent.objects.get_or_create(stripe_event_id=event.event_id, defaults=fields)
    if stored.status != _Status.PROCESSED:
        enqueue_on_commit("payments.process_event", event_id=stored.pk)
    return is_new


def process(*, event_id: int, now: datetime) -> bool:
    """
    Apply one event; False if it was processed before, is being processed, or does not exist.

    A failure is written to the event outside the rolled-back transaction, with the
    time of the next retry, so that neither the event nor the reason is lost.
    """
    event = StripeEvent.objects.filter(pk=event_id).first()
    if event is None or event.status == _Status.PROCESSED:
        return False
    try:
        _require_our_mode(event)
        return fetch_and_apply(
            fetch=partial(fetch_snapshot, event_type=event.type, object_id=event.object_id),
            apply=partial(_apply, event_id=event_id, now=now),
        )
    except OutOfTime:
        # The worker reached its time limit, so the event has not failed; the sweep retries it.
        raise
    except Exception as error:
        _store_failure(event=event, error=error, now=now)
        if isinstance(error, BillingUnavailable):
            raise
        if not isinstance(error, DomainError):
            logger.exception("event %s failed", event.stripe_event_id)
        return False


def _require_our_mode(event: StripeEvent) -> None:
    """
    Refuse an event of the other mode: the key and the endpoint's secret are of different modes.

    Raises:
        OtherMode: the event stays failed, so that it is counted, alerted on, and applied once the settings match.
    """
    body = bytes(event.raw_body)  # Empty once a person was erased.
    if body and not is_of_our_mode(is_live=json.loads(body)["livemode"]):
        raise OtherMode(
            "The endpoint's secret is of Stripe's other mode, live or test, than STRIPE_SECRET_KEY."
        )


@transaction.atomic(durable=True)
def _apply(snapshot: Snapshot, *, event_id: int, now: datetime) -> bool:
    event = StripeEvent.objects.select_for_update(no_key=True, skip_locked=True).filter(pk=event_id).first()
    if event is None or event.status == _Status.PROCESSED:
        return False
    outcome = snapshot.apply(cause=f"{event.type} {event.stripe_event_id}", now=now)
    StripeEvent.objects.filter(pk=event_id).update(
        status=_Status.PROCESSED,
        outcome=outcome,
        processed_at=now,
        last_error="",
        attempts=F("attempts") + 1,
    )
    return True


def _store_failure(*, event: StripeEvent, error: Exception, now: datetime) -> None:
    wait = min(_FIRST_WAIT * 2 ** min(event.attempts, 20), _LONGEST_WAIT)
    reason = f"{error.code}: {error.detail}" if isinstance(error, DomainError) else type(error).__name__
    StripeEvent.objects.filter(pk=event.pk).exclude(status=_Status.PROCESSED).update(
        status=_Status.FAILED,
        attempts=F("attempts") + 1,
        last_error=reason[:1000],
        next_attempt_at=now + wait,
    )


def process_due(*, now: datetime) -> int:
    """
    Process events whose message was lost, and failed events that are due; return how many were applied.

    One sweep runs at a time. It stops if Stripe is unreachable, and after `SWEEP_SECONDS`; the next sweep continues.
    """
    due = StripeEvent.objects.filter(
        status__in=[_Status.RECEIVED, _Status.FAILED], next_attempt_at__lte=now
    ).order_by("next_attempt_at", "pk")
    applied, ends_at = 0, time.monotonic() + SWEEP_SECONDS
    with try_lease("payments.process_due") as acquired:
        try:
            for event_id in due.values_list("pk", flat=True) if acquired else ():
                if time.monotonic() >= ends_at:
                    break
                applied += process(event_id=event_id, now=now)
        except BillingUnavailable:
            logger.warning("stripe is unreachable, events wait")
    return applied


def process_again(*, events: QuerySet[StripeEvent], now: datetime) -> int:
    """Enqueue unprocessed events for support; return how many. Joins the caller's transaction."""
    event_ids = list(events.exclude(status=_Status.PROCESSED).values_list("pk", flat=True))
    with transaction.atomic():
        for event_id in event_ids:
            enqueue_on_commit("payments.process_event", event_id=event_id)
        return (
            StripeEvent.objects.filter(pk__in=event_ids)
            .exclude(status=_Status.PROCESSED)
            .update(next_attempt_at=now)
        )


def dismiss(*, event_id: int, now: datetime) -> bool:
    """
    Close a failed event without applying it, for finance; return False if it is not failed any more.

    This is for events that can never be applied, because the object was deleted at Stripe or is not ours. The
    reason of the failure stays on the row. Reconciliation still finds money that such an event is about.
    """
    failed = StripeEvent.objects.filter(pk=event_id, status=_Status.FAILED)
    return (
        failed.update(status=_Status.PROCESSED, outcome=StripeEvent.Outcome.DISMISSED, processed_at=now) > 0
    )
