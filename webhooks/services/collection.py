"""
Collect the events since the last run, and store a message for each endpoint that receives them.

Calls, postings and payments do not depend on webhooks: their rows are read afterwards. A row becomes visible when its
transaction commits, some time after its timestamp, so each run reads the last minutes again. A unique key ensures one
message per event and endpoint.

After an outage, one run at a time reads what is missing, a slice of each source in turn. A run is short, because other
tasks need its worker; the next one continues.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta

from django.db import transaction

from gateway.common.leases import try_lease
from webhooks import queries
from webhooks.models import OF_SPONSORED_CALLS, TO_SPONSORS, Cursor, Endpoint, EventType, Message, Subject
from webhooks.payloads import Event
from webhooks.queries import Audience, Span, sponsors
from webhooks.services import levels, notices

# Longer than any transaction that writes such rows, plus the clocks' skew.
_OVERLAP = timedelta(minutes=2)
# The interval read at once after an outage. It doubles while nothing is found. If a longer one holds too much for one
# task, the next run begins with the shortest.
_SLICE, _LONGEST_SLICE = timedelta(minutes=10), timedelta(days=1)
_RUN_SECONDS = 30.0
# A reader stores the messages of a span, and returns the number of rows that it found.
_Reader = Callable[[Span, Audience], int]
_Histories = Callable[[Iterable[int]], dict[int, list[Event]]]
# The last event of a call that has ended.
_ENDS = (
    EventType.CALL_SETTLED,
    EventType.SPONSOR_CALL_SETTLED,
    EventType.SPONSOR_PROFILE_CREATED,
    EventType.SPONSOR_PROFILE_FAILED,
)


def collect(*, now: datetime) -> None:
    """Store messages for events committed until now; do nothing while another run does."""
    with try_lease("webhooks.collect") as acquired:
        if acquired:
            _collect(now)


def _collect(now: datetime) -> None:
    ends_at = time.monotonic() + _RUN_SECONDS
    sources = _sources(now)
    while sources:
        sources = [source for source in sources if source.read_slice(now)]
        if time.monotonic() > ends_at:
            break
    _settlements(now)


class _Source:
    """A source with the endpoints that receive its events, and the interval to read next."""

    def __init__(self, name: str, reader: _Reader, audience: Audience) -> None:
        self._name, self._reader, self._audience = name, reader, audience
        self._slice = _SLICE

    @transaction.atomic(durable=True)
    def read_slice(self, now: datetime) -> bool:
        """Read one slice; return whether more is left."""
        cursor = Cursor.objects.select_for_update().get(source=self._name)
        until = min(now, cursor.read_until + self._slice)
        found = self._reader(Span(cursor.read_until - _OVERLAP, until), self._audience)
        Cursor.objects.filter(pk=cursor.pk, read_until__lt=until).update(read_until=until)
        self._slice = _SLICE if found else min(2 * self._slice, _LONGEST_SLICE)
        return until < now


def _sources(now: datetime) -> list[_Source]:
    """Return the sources whose events somebody receives, and move the cursors of the others to now."""
    audience = Audience(list(Endpoint.objects.enabled()))
    mails = queries.confirmed_addresses().exists()
    sources = []
    for name, reader, types in _OF_PEOPLE:
        _begin(name, now)
        if audience.endpoints or mails:
            sources.append(_Source(name, reader, audience.of_type(*types)))
        else:
            _move(name, now)
    for name, reader, types in _SOURCES if audience.endpoints else ():
        _begin(name, audience.since)
        _move(name, audience.since)
        subscribers = audience.of_type(*types)
        if subscribers.endpoints:
            sources.append(_Source(name, reader, subscribers))
        else:
            _move(name, now)
    return sources


def _begin(source: str, moment: datetime) -> None:
    Cursor.objects.get_or_create(source=source, defaults={"read_until": moment})


def _move(source: str, moment: datetime) -> None:
    """Move the cursor past events that no endpoint receives."""
    Cursor.objects.filter(source=source, read_until__lt=moment).update(read_until=moment)


def _calls(span: Span, audience: Audience) -> int:
    calls = queries.accepted_calls(span, audience)
    recipients = audience.endpoints_for((user_id, moment) for _, user_id, moment in calls)
    subjects = [
        Subject(endpoint=endpoint, user_id=user_id, kind=Subject.Kind.CALL, row_id=call_id, changed_at=moment)
        for (call_id, user_id, moment), endpoints in zip(calls, recipients, strict=True)
        for endpoint in endpoints
    ]
    Subject.objects.bulk_create(subjects, ignore_conflicts=True)
    changed = {call_id for call_id, _, _ in calls} | queries.reversed_calls(span)
    _write_call_messages(changed)
    return len(changed)


def _sponsored_calls(span: Span, audience: Audience) -> int:
    followed = sponsors.sponsored_calls(span, audience)
    Subject.objects.bulk_create(followed, ignore_conflicts=True, batch_size=1000)
    ended = sponsors.settled_sponsored_calls() | sponsors.reversed_sponsored_calls(span)
    _write_histories(Subject.Kind.SPONSORED, ended, sponsors.sponsored_histories)
    return len(followed)


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


def _entries(span: Span, audience: Audience) -> int:
    return _write_to(audience, queries.posted_entries(span, audience))


def _earnings(span: Span, audience: Audience) -> int:
    return _write_to(audience, queries.decided_earnings(span, audience))


def _expiries(span: Span, audience: Audience) -> int:
    events = queries.announced_expiries(span, audience)
    notices.write_expiries(events)
    return _write_to(audience, events)


def _levels(span: Span, audience: Audience) -> int:
    changed = queries.changed_balances(span, audience)
    events = levels.crossings(changed, now=span.until)
    _write_to(audience, events)
    notices.write(events)
    return len(changed)


def _sponsors(span: Span, audience: Audience) -> int:
    of_members, of_sponsors = levels.sponsors_crossings(now=span.until)
    _write_to(audience, of_members)
    of_owners, of_numbers = levels.profile_crossings(now=span.until)
    notices.write([*of_members, *of_owners])
    notices.write_outages(sponsors.failing_servers(span))
    posted = sponsors.posted_to_sponsors(span)
    _write(
        (endpoint, event)
        for sponsor_id, event in [*of_sponsors, *of_numbers, *posted]
        for endpoint in audience.endpoints
        if endpoint.sponsor_id == sponsor_id and endpoint.enabled_at <= event.happened_at
    )
    return len(posted)


def _top_ups(span: Span, audience: Audience) -> int:
    return _write_to(audience, queries.ended_top_ups(span, audience))


def _write_to(audience: Audience, events: Sequence[Event]) -> int:
    """Store a message of each event for the endpoints that receive it; return the number of events."""
    recipients = audience.endpoints_for((event.user_id, event.happened_at) for event in events)
    _write(
        (endpoint, event)
        for event, endpoints in zip(events, recipients, strict=True)
        for endpoint in endpoints
    )
    return len(events)


def _subscriptions(span: Span, audience: Audience) -> int:
    rows = queries.synced_subscriptions(span, audience)
    recipients = audience.endpoints_for((event.user_id, event.happened_at) for _, event in rows)
    for (row_id, event), endpoints in zip(rows, recipients, strict=True):
        for endpoint in endpoints:
            _write_subscription_message(endpoint, row_id, event)
    return len(rows)


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
