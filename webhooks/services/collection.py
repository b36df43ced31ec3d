"""
Collect the events since the last run, and store a message for each endpoint that receives them.

Calls, postings and payments do not depend on webhooks: their rows are read afterwards. A row becomes visible when its
transaction commits, some time after its timestamp, so each run reads the last minutes again. A unique key ensures one
message per event and endpoint.
"""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta

from django.db import transaction

from webhooks import queries
from webhooks.models import OF_SPONSORED_CALLS, TO_SPONSORS, Cursor, Endpoint, EventType, Message, Subject
from webhooks.payloads import Event
from webhooks.queries import Audience, Span, sponsors
from webhooks.services import levels, notices

# Longer than any transaction that writes such rows, plus the clocks' skew.
_OVERLAP = timedelta(minutes=2)
# The longest interval read at once after an outage.
_SLICE = timedelta(minutes=10)
_Reader = Callable[[Span, Audience], None]
_Histories = Callable[[Iterable[int]], dict[int, list[Event]]]
# The last event of a call that has ended.
_ENDS = (EventType.CALL_SETTLED, EventType.SPONSOR_CALL_SETTLED)


def collect(*, now: datetime) -> None:
    """Store messages for all events committed until now."""
    audience = Audience(list(Endpoint.objects.enabled()))
    for source, reader, types in _OF_PEOPLE:
        _read_for_people(source, reader, audience.of_type(*types), now)
    if not audience.endpoints:
        return
    for source, reader, types in _SOURCES:
        Cursor.objects.get_or_create(source=source, defaults={"read_until": audience.since})
        _move(source, audience.since)
        subscribers = audience.of_type(*types)
        if not subscribers.endpoints:
            _move(source, now)
        while subscribers.endpoints and _read_slice(source, reader, subscribers, now):
            pass
    _settlements(now)


def _read_for_people(source: str, reader: _Reader, audience: Audience, now: datetime) -> None:
    """Read a source whose events go to endpoints and to people who want e-mails."""
    Cursor.objects.get_or_create(source=source, defaults={"read_until": now})
    if not audience.endpoints and not queries.confirmed_addresses().exists():
        _move(source, now)
    while _read_slice(source, reader, audience, now):
        pass


def _move(source: str, moment: datetime) -> None:
    """Move the cursor past events that no endpoint receives."""
    Cursor.objects.filter(source=source, read_until__lt=moment).update(read_until=moment)


@transaction.atomic(durable=True)
def _read_slice(source: str, reader: _Reader, audience: Audience, now: datetime) -> bool:
    """Read one slice; return whether more is left. Return at once if another run holds the cursor."""
    cursor = Cursor.objects.select_for_update(skip_locked=True).filter(source=source).first()
    if cursor is None:
        return False
    until = min(now, cursor.read_until + _SLICE)
    reader(Span(cursor.read_until - _OVERLAP, until), audience)
    Cursor.objects.filter(pk=cursor.pk, read_until__lt=until).update(read_until=until)
    return until < now


def _calls(span: Span, audience: Audience) -> None:
    calls = queries.accepted_calls(span, audience)
    recipients = audience.endpoints_for((user_id, moment) for _, user_id, moment in calls)
    subjects = [
        Subject(endpoint=endpoint, user_id=user_id, kind=Subject.Kind.CALL, row_id=call_id, changed_at=moment)
        for (call_id, user_id, moment), endpoints in zip(calls, recipients, strict=True)
        for endpoint in endpoints
    ]
    Subject.objects.bulk_create(subjects, ignore_conflicts=True)
    _write_call_messages({call_id for call_id, _, _ in calls} | queries.reversed_calls(span))


def _sponsored_calls(span: Span, audience: Audience) -> None:
    followed = sponsors.sponsored_calls(span, audience)
    Subject.objects.bulk_create(followed, ignore_conflicts=True, batch_size=1000)
    ended = sponsors.settled_sponsored_calls() | sponsors.reversed_sponsored_calls(span)
    _write_histories(Subject.Kind.SPONSORED, ended, sponsors.sponsored_histories)


@transaction.atomic(durable=True)
def _settlements(now: datetime) -> None:
    if (
        Cursor.objects.select_for_update(skip_locked=True)
        .filter(source="calls", read_until__gte=now)
        .exists()
    ):
        _write_call_messages(queries.settled_calls())


def _write_call_messages(call_ids: set[int]) -> None:
    _write_histories(Subject.Kind.CALL, call_ids, queries.histories)


def _write_histories(kind: Subject.Kind, row_ids: set[int], read: _Histories) -> None:
    """Store missing messages of these calls, in order, for the endpoints that receive their events."""
    subjects = Subject.objects.filter(kind=kind, row_id__in=row_ids)
    rows = list(subjects.filter(endpoint__disabled_at=None).select_related("endpoint").order_by("pk"))
    histories = read({row.row_id for row in rows})
    _write((row.endpoint, event) for row in rows for event in histories[row.row_id])
    ended = {row.pk for row in rows if histories[row.row_id][-1].type in _ENDS}
    Subject.objects.filter(pk__in=ended).update(is_open=False)
    reopened = {row.pk for row in rows if not row.is_open} - ended
    Subject.objects.filter(pk__in=reopened).update(is_open=True)


def _entries(span: Span, audience: Audience) -> None:
    _write_to(audience, queries.posted_entries(span, audience))


def _earnings(span: Span, audience: Audience) -> None:
    _write_to(audience, queries.decided_earnings(span, audience))


def _expiries(span: Span, audience: Audience) -> None:
    events = queries.announced_expiries(span, audience)
    _write_to(audience, events)
    notices.write_expiries(events)


def _levels(span: Span, audience: Audience) -> None:
    events = levels.crossings(queries.changed_balances(span, audience), now=span.until)
    _write_to(audience, events)
    notices.write(events)


def _sponsors(span: Span, audience: Audience) -> None:
    of_members, of_sponsors = levels.sponsors_crossings(now=span.until)
    _write_to(audience, of_members)
    notices.write(of_members)
    _write(
        (endpoint, event)
        for sponsor_id, event in [*of_sponsors, *sponsors.posted_to_sponsors(span)]
        for endpoint in audience.endpoints
        if endpoint.sponsor_id == sponsor_id and endpoint.enabled_at <= event.happened_at
    )


def _top_ups(span: Span, audience: Audience) -> None:
    _write_to(audience, queries.ended_top_ups(span, audience))


def _write_to(audience: Audience, events: Sequence[Event]) -> None:
    recipients = audience.endpoints_for((event.user_id, event.happened_at) for event in events)
    _write(
        (endpoint, event)
        for event, endpoints in zip(events, recipients, strict=True)
        for endpoint in endpoints
    )


def _subscriptions(span: Span, audience: Audience) -> None:
    rows = queries.synced_subscriptions(span, audience)
    recipients = audience.endpoints_for((event.user_id, event.happened_at) for _, event in rows)
    for (row_id, event), endpoints in zip(rows, recipients, strict=True):
        for endpoint in endpoints:
            _write_subscription_message(endpoint, row_id, event)


def _write_subscription_message(endpoint: Endpoint, row_id: int, event: Event) -> None:
    """Store a message with the subscription's state, unless the last message had the same state."""
    subject, _ = Subject.objects.get_or_create(
        endpoint=endpoint,
        kind=Subject.Kind.SUBSCRIPTION,
        row_id=row_id,
        defaults={"user_id": event.user_id, "is_open": False},
    )
    if subject.state != event.data:
        _write([(endpoint, event)])
        Subject.objects.filter(pk=subject.pk).update(state=event.data, changed_at=event.happened_at)


def _write(messages: Iterable[tuple[Endpoint, Event]]) -> None:
    """Store the messages that the endpoints subscribe to and do not have, in the given order."""
    rows = [
        Message(
            endpoint=endpoint,
            user_id=event.user_id or None,
            type=event.type,
            key=event.key,
            ordering_key=event.ordering_key,
            body=event.body,
        )
        for endpoint, event in messages
        if event.type in endpoint.event_types
    ]
    Message.objects.bulk_create(rows, ignore_conflicts=True, batch_size=1000)


_OF_PEOPLE: tuple[tuple[str, _Reader, tuple[EventType, ...]], ...] = (
    ("levels", _levels, (EventType.CREDITS_LOW, EventType.CREDITS_DEPLETED, EventType.CREDITS_RECOVERED)),
    ("expiries", _expiries, (EventType.CREDITS_EXPIRING,)),
    ("sponsors", _sponsors, TO_SPONSORS),
)
_SOURCES: tuple[tuple[str, _Reader, tuple[EventType, ...]], ...] = (
    ("calls", _calls, (EventType.CALL_ACCEPTED, EventType.CALL_SETTLED, EventType.CALL_REOPENED)),
    ("entries", _entries, (EventType.CREDITS_POSTED,)),
    ("earnings", _earnings, (EventType.EARNING_HELD, EventType.EARNING_RELEASED, EventType.EARNING_REVERSED)),
    ("top-ups", _top_ups, (EventType.TOP_UP,)),
    ("subscriptions", _subscriptions, (EventType.SUBSCRIPTION_CHANGED,)),
    ("sponsored-calls", _sponsored_calls, OF_SPONSORED_CALLS),
)
