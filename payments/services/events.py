"""Processing the inbox: each event is applied and marked processed in one transaction, or tried again."""

import logging
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import F

from gateway.common.errors import DomainError
from payments.models import StripeEvent
from payments.services import facts

logger = logging.getLogger(__name__)
_Status = StripeEvent.Status
# 10 s, 20 s, 40 s … and no longer than six hours between two tries.
_FIRST_WAIT, _LONGEST_WAIT = timedelta(seconds=10), timedelta(hours=6)


def process(*, event_id: int, now: datetime) -> bool:
    """
    Apply one event; False where it was processed before, or is being processed.

    Whatever goes wrong is written to the event outside the rolled-back transaction,
    with the time of the next try, so that neither the event nor its reason is lost.
    """
    event = StripeEvent.objects.get(pk=event_id)
    if event.status == _Status.PROCESSED:
        return False
    try:
        found = facts.gather(
            event_type=event.type, object_id=event.object_id, event_id=event.stripe_event_id, now=now
        )
        return _apply(event_id=event_id, found=found, now=now)
    except Exception as error:
        _note_failure(event=event, error=error, now=now)
        if not isinstance(error, DomainError):
            logger.exception("event %s failed", event.stripe_event_id)
        return False


@transaction.atomic(durable=True)
def _apply(*, event_id: int, found: facts.Facts, now: datetime) -> bool:
    event = StripeEvent.objects.select_for_update(no_key=True, skip_locked=True).filter(pk=event_id).first()
    if event is None or event.status == _Status.PROCESSED:
        return False
    found.apply(cause=f"{event.type} {event.stripe_event_id}", now=now)
    StripeEvent.objects.filter(pk=event_id).update(
        status=_Status.PROCESSED, processed_at=now, last_error="", attempts=F("attempts") + 1
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
    """Process what the message lost, and what failed and is due again; return how many were applied."""
    due = StripeEvent.objects.filter(
        status__in=[_Status.RECEIVED, _Status.FAILED], next_attempt_at__lte=now
    ).order_by("next_attempt_at", "pk")
    return sum(process(event_id=event_id, now=now) for event_id in due.values_list("pk", flat=True)[:200])
