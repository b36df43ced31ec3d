"""
The webhook's inbox: what Stripe signed is stored, whatever becomes of it later.

Processing the inbox: each event is applied and marked processed in one transaction, or tried again.
"""

import logging
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import F, QuerySet

from gateway.common.db import OutOfTime, try_advisory_lock
from gateway.common.errors import DomainError
from gateway.common.tasks import enqueue_on_commit
from payments.errors import AnswerOutdated, BillingUnavailable
from payments.models import StripeEvent
from payments.services import snapshots, synchronisation
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


logger = logging.getLogger(__name__)
_Status = StripeEvent.Status
# 10 s, 20 s, 40 s … and no longer than six hours between two tries.
_FIRST_WAIT, _LONGEST_WAIT = timedelta(seconds=10), timedelta(hours=6)
# A worker needs well under a minute for so many.
_BATCH = 50


def process(*, event_id: int, now: datetime) -> bool:
    """
    Apply one event; False where it was processed before, is being processed, or is none of this database's.

    Whatever goes wrong is written to the event outside the rolled-back transaction,
    with the time of the next try, so that neither the event nor its reason is lost.

    Raises:
        BillingUnavailable: Stripe is away, for other events too.
        OutOfTime: the worker must stop; nothing is held against the event.
    """
    event = StripeEvent.objects.filter(pk=event_id).first()
    if event is None or event.status == _Status.PROCESSED:
        return False
    try:
        return _gather_and_apply(event=event, now=now)
    except OutOfTime:
        # The worker has run out of time, whichever event it was at; the sweep tries this one again.
        raise
    except Exception as error:
        _note_failure(event=event, error=error, now=now)
        if isinstance(error, BillingUnavailable):
            raise
        if not isinstance(error, DomainError):
            logger.exception("event %s failed", event.stripe_event_id)
        return False


def _gather_and_apply(*, event: StripeEvent, now: datetime) -> bool:
    for _ in range(synchronisation.LOOKS - 1):
        found = snapshots.gather(event_type=event.type, object_id=event.object_id)
        try:
            return _apply(event_id=event.pk, found=found, now=now)
        except AnswerOutdated:
            continue
    return _apply(
        event_id=event.pk, found=snapshots.gather(event_type=event.type, object_id=event.object_id), now=now
    )


@transaction.atomic(durable=True)
def _apply(*, event_id: int, found: snapshots.Facts, now: datetime) -> bool:
    event = StripeEvent.objects.select_for_update(no_key=True, skip_locked=True).filter(pk=event_id).first()
    if event is None or event.status == _Status.PROCESSED:
        return False
    outcome = found.apply(cause=f"{event.type} {event.stripe_event_id}", now=now)
    StripeEvent.objects.filter(pk=event_id).update(
        status=_Status.PROCESSED,
        outcome=outcome,
        processed_at=now,
        last_error="",
        attempts=F("attempts") + 1,
    )
    return True


def _note_failure(*, event: StripeEvent, error: Exception, now: datetime) -> None:
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
    Process events whose message was lost, and failed ones that are due again; return how many were applied.

    One sweep runs at a time, and it leaves the rest for the next one when Stripe is away.
    """
    due = StripeEvent.objects.filter(
        status__in=[_Status.RECEIVED, _Status.FAILED], next_attempt_at__lte=now
    ).order_by("next_attempt_at", "pk")
    applied = 0
    with try_advisory_lock("payments.process_due") as acquired:
        try:
            for event_id in due.values_list("pk", flat=True)[:_BATCH] if acquired else ():
                applied += process(event_id=event_id, now=now)
        except BillingUnavailable:
            logger.warning("stripe is away, events wait")
    return applied


def process_again(*, events: QuerySet[StripeEvent], now: datetime) -> int:
    """Let events that failed be tried now, for support; return how many. Joins the caller's transaction."""
    waiting = events.exclude(status=_Status.PROCESSED)
    chosen = list(waiting.values_list("pk", flat=True))
    with transaction.atomic():
        for event_id in chosen:
            enqueue_on_commit("payments.process_event", event_id=event_id)
        return (
            StripeEvent.objects.filter(pk__in=chosen)
            .exclude(status=_Status.PROCESSED)
            .update(next_attempt_at=now)
        )


def dismiss(*, event_id: int, now: datetime) -> bool:
    """
    Be done with an event that failed without applying it, for finance; False where it has not failed by now.

    For events that will never be applied: the object is gone at Stripe, or cannot be one of ours. The reason
    of the failure stays on the row. `catching_up` still finds money that such an event was about.
    """
    failed = StripeEvent.objects.filter(pk=event_id, status=_Status.FAILED)
    return (
        failed.update(status=_Status.PROCESSED, outcome=StripeEvent.Outcome.DISMISSED, processed_at=now) > 0
    )
