"""Read the sources of messages (calls, settlements, entries, subscriptions), and the endpoints that receive them."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from django.db.models import Exists, Max, OuterRef, Prefetch, Q, QuerySet, Subquery

from credits.models import CreditEntry, EntrySource, ExpiringLot
from earnings.models import Postback, PostbackKind, PostbackState, Refusal
from earnings.queries import held_earning, left_of
from gateway.common import db
from gateway.common.statements import Statements
from payments.models import Payout, Purchase, Subscription
from relay.models import Attempt, RelayTransaction, ReversedSettlement
from users.models import SignInSession
from webhooks import payloads
from webhooks.models import Delivery, Endpoint, EventType, Message, NoticeAddress, Subject
from webhooks.payloads import Event


class _Sql(Statements, file=__file__):
    counts: str


class Span(NamedTuple):
    """A half-open interval of time."""

    since: datetime
    until: datetime


class _Session(NamedTuple):
    origin: str
    began_at: datetime
    ended_at: datetime


@dataclass(frozen=True)
class Audience:
    """The enabled endpoints. Each receives events of users who are signed in to its app at that time."""

    endpoints: Sequence[Endpoint]

    def of_type(self, *types: EventType) -> "Audience":
        return Audience([row for row in self.endpoints if not set(types).isdisjoint(row.event_types)])

    @property
    def since(self) -> datetime:
        """The earliest time from which one of them receives events."""
        return min(row.enabled_at for row in self.endpoints)

    @property
    def sessions(self) -> QuerySet[SignInSession]:
        """The sessions opened by one of the endpoints' apps."""
        return SignInSession.objects.filter(
            origin__in={name for row in self.endpoints for name in row.origins}
        )

    def endpoints_for(self, people: Iterable[tuple[int, datetime]]) -> Iterator[list[Endpoint]]:
        """Yield the endpoints that receive the event, for each user and time."""
        pairs = list(people)
        sessions = self._sessions_of({user_id for user_id, _ in pairs})
        for user_id, moment in pairs:
            origins = {row.origin for row in sessions[user_id] if row.began_at <= moment < row.ended_at}
            yield [
                endpoint
                for endpoint in self.endpoints
                if endpoint.enabled_at <= moment and not origins.isdisjoint(endpoint.origins)
            ]

    def _sessions_of(self, user_ids: set[int]) -> dict[int, list[_Session]]:
        sessions = defaultdict(list)
        for row in self.sessions.filter(user_id__in=user_ids):
            ended_at = min(row.expires_at, row.revoked_at or row.expires_at)
            sessions[row.user_id].append(_Session(row.origin, row.created_at, ended_at))
        return sessions


def accepted_calls(span: Span, audience: Audience) -> list[tuple[int, int, datetime]]:
    """Return id, user and time of each new call in the interval, of users with a session at an endpoint."""
    calls = RelayTransaction.objects.filter(created_at__gte=span.since, created_at__lt=span.until)
    followed = Subject.objects.filter(kind=Subject.Kind.CALL, row_id=OuterRef("pk"))
    visible = calls.filter(Exists(audience.sessions.filter(user_id=OuterRef("user_id"))), ~Exists(followed))
    return list(visible.order_by("pk").values_list("pk", "user_id", "created_at"))


def reversed_calls(span: Span) -> set[int]:
    """Return the ids of the calls whose settlement was reversed in the interval."""
    rows = ReversedSettlement.objects.filter(reversed_at__gte=span.since, reversed_at__lt=span.until)
    return set(rows.values_list("relay_transaction_id", flat=True))


def settled_calls() -> set[int]:
    """Return the ids of ended calls for whose end an endpoint has no message yet."""
    open_subjects = Subject.objects.filter(kind=Subject.Kind.CALL, is_open=True, row_id=OuterRef("pk"))
    calls = RelayTransaction.objects.exclude(status__in=RelayTransaction.IN_PROGRESS).filter(
        Exists(open_subjects)
    )
    return set(calls.values_list("pk", flat=True))


def histories(call_ids: Iterable[int]) -> dict[int, list[Event]]:
    """Return the events of each of these calls, in order, by the call's id."""
    ids = list(call_ids)
    answered = first_hashes(ids)
    calls = RelayTransaction.objects.filter(pk__in=ids).defer("payload", "signature")
    return {
        call.pk: payloads.history_of(
            call,
            first_hash=answered.get(call.pk, call.transaction_hash),
            charged=-call.hold.entry.amount if call.hold.entry else 0,
            reversals=sorted(call.reversed_settlements.all(), key=lambda row: row.number),
        )
        for call in calls.select_related("hold__entry", "hold__sponsored__version").prefetch_related(
            "reversed_settlements"
        )
    }


def first_hashes(call_ids: Iterable[int]) -> dict[int, str]:
    """Return the hash that `execute` returned for each of these calls, by the call's id."""
    attempts = Attempt.objects.filter(relay_transaction__in=list(call_ids))
    first = attempts.order_by("relay_transaction", "sequence", "pk").distinct("relay_transaction")
    return dict(first.values_list("relay_transaction_id", "transaction_hash"))


def posted_entries(span: Span, audience: Audience) -> list[Event]:
    """Return the entries of the interval except relay charges, of users with a session at an endpoint."""
    entries = CreditEntry.objects.filter(created_at__gte=span.since, created_at__lt=span.until)
    visible = entries.filter(Exists(audience.sessions.filter(user_id=OuterRef("account__user_id"))))
    rows = visible.exclude(source=EntrySource.RELAY_TRANSACTION).select_related("account__user")
    return [
        payloads.of_entry(
            row, user_id=row.account.person.pk, profile_address=str(row.account.person.profile_address)
        )
        for row in rows.order_by("pk")
    ]


def announced_expiries(span: Span, audience: Audience) -> list[Event]:
    """Return the expiries announced in the interval, of users with a session at an endpoint or an address."""
    rows = ExpiringLot.objects.filter(announced_at__gte=span.since, announced_at__lt=span.until)
    visible = rows.filter(_reached(audience, OuterRef("entry__account__user_id")))
    return [payloads.of_expiry(row) for row in visible.select_related("entry__account__user").order_by("pk")]


def confirmed_addresses() -> QuerySet[NoticeAddress]:
    return NoticeAddress.objects.filter(confirmed_at__isnull=False)


def _reached(audience: Audience, owner: OuterRef) -> Q:
    """Return the condition that the owner has a session at an endpoint, or a confirmed address."""
    return Exists(audience.sessions.filter(user_id=owner)) | Exists(
        confirmed_addresses().filter(user_id=owner)
    )


class ChangedBalance(NamedTuple):
    """The newest balance of an account with new entries, and the time of the last one."""

    user_id: int
    account_id: int
    balance: int
    changed_at: datetime


def changed_balances(span: Span, audience: Audience) -> list[ChangedBalance]:
    """Return the accounts with entries in the interval, of users with a session at an endpoint or an address."""
    changed = CreditEntry.objects.filter(created_at__gte=span.since, created_at__lt=span.until)
    visible = changed.filter(_reached(audience, OuterRef("account__user_id")))
    accounts = visible.order_by().values("account__user_id", "account_id", "account__balance")
    rows = accounts.annotate(at=Max("created_at")).order_by("account_id")
    return [
        ChangedBalance(*row)
        for row in rows.values_list("account__user_id", "account_id", "account__balance", "at")
    ]


def decided_earnings(span: Span, audience: Audience) -> list[Event]:
    """Return the earnings held, released or taken back in the interval, of users with a session at an endpoint."""
    credit = Postback.objects.filter(
        network=OuterRef("network"), original_id=OuterRef("original_id"), kind=PostbackKind.CREDIT
    )
    decided = Postback.objects.filter(decided_at__gte=span.since, decided_at__lt=span.until)
    rows = (
        left_of(decided.filter(_HELD | _RELEASED | _FORFEITED | _TAKEN_BACK))
        .filter(Exists(audience.sessions.filter(user_id=OuterRef("user_id"))))
        .annotate(earning_id=Subquery(credit.values("pk")[:1]))
        .select_related("user", "network", "entry")
        .defer("raw", "headers")
    )
    return [
        _of_earning(row, left=row.left, earning_id=row.earning_id)
        for row in rows.order_by("decided_at", "pk")
    ]


_CREDIT = Q(kind=PostbackKind.CREDIT)
_WAS_HELD = ~Q(hold_reason="") | Q(available_at__isnull=False)
_HELD = _CREDIT & Q(state=PostbackState.HELD)
_RELEASED = _CREDIT & Q(state=PostbackState.AVAILABLE) & _WAS_HELD
_FORFEITED = _CREDIT & Q(refused_because=Refusal.FORFEITED, user__isnull=False) & _WAS_HELD
_TAKEN_BACK = Q(kind=PostbackKind.REVERSAL, state=PostbackState.REVERSED, credits__gt=0)


def _of_earning(row: Postback, *, left: int, earning_id: int) -> Event:
    if row.kind == PostbackKind.REVERSAL:
        return payloads.of_earning(
            EventType.EARNING_REVERSED, row, earning_id=earning_id, credits=row.credits
        )
    if row.state == PostbackState.REFUSED:
        return payloads.of_earning(EventType.EARNING_REVERSED, row, earning_id=row.pk, credits=left)
    if row.state == PostbackState.AVAILABLE:
        posted = row.entry.amount if row.entry else 0
        return payloads.of_earning(EventType.EARNING_RELEASED, row, earning_id=row.pk, credits=posted)
    held = held_earning(row, left=left)
    return payloads.of_earning(
        EventType.EARNING_HELD,
        row,
        earning_id=row.pk,
        credits=left,
        arrives_at=held.arrives_at,
        because=held.because,
    )


def ended_top_ups(span: Span, audience: Audience) -> list[Event]:
    """Return the automatic purchases that ended in the interval, of users with a session at an endpoint."""
    rows = Purchase.objects.filter(
        top_up__isnull=False, finished_at__gte=span.since, finished_at__lt=span.until
    ).filter(Exists(audience.sessions.filter(user_id=OuterRef("user_id"))))
    paid = Payout.objects.filter(purchase__in=rows).values_list("purchase_id", "credits")
    credits_by_purchase = dict(paid)
    return [
        payloads.of_top_up(
            row,
            credits=credits_by_purchase.get(row.pk, 0),
            profile_address=str(row.user.profile_address),
            at=row.finished_at,
        )
        for row in rows.select_related("user").order_by("finished_at")
        if row.finished_at is not None
    ]


def synced_subscriptions(span: Span, audience: Audience) -> list[tuple[int, Event]]:
    """Return the subscriptions synced in the interval, of users with a session at an endpoint."""
    rows = Subscription.objects.filter(synced_at__gte=span.since, synced_at__lt=span.until)
    visible = rows.filter(Exists(audience.sessions.filter(user_id=OuterRef("user_id")))).select_related(
        "user"
    )
    return [
        (row.pk, payloads.of_subscription(row, profile_address=str(row.user.profile_address)))
        for row in visible.order_by("synced_at")
    ]


def recent_messages(endpoint: Endpoint) -> list[Message]:
    """Return the newest messages of an endpoint, newest first; `last_attempts` of each has its newest delivery."""
    newest = Delivery.objects.filter(message=OuterRef("message")).order_by("-pk").values("pk")[:1]
    last = Prefetch("deliveries", Delivery.objects.filter(pk=Subquery(newest)), to_attr="last_attempts")
    rows = Message.objects.filter(endpoint=endpoint).defer("body").order_by("-pk")
    return list(rows.prefetch_related(last)[:MOST_MESSAGES])


# The number of an endpoint's messages that its sponsor sees.
MOST_MESSAGES = 50


class DeliveryCounts(NamedTuple):
    """Counts over all endpoints and their messages."""

    waiting: int
    # Delay in seconds of the message that has been due longest; 0 if none is due.
    overdue_age: float
    given_up_in_last_day: int
    disabled: int
    failing: int


def delivery_counts() -> DeliveryCounts:
    """Return the counts of this moment, in one statement."""
    return DeliveryCounts(*db.only_row(_Sql.counts, {}))
