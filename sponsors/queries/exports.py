"""Exports of a sponsor's month as CSV rows: every entry of its account, and every call that it paid for."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from django.db.models import QuerySet

from credits.models import CreditEntry
from sponsors.models import Sponsor
from sponsors.queries.figures import calls_of, user_reference

# Each page is a separate statement, so that no cursor stays open while a slow client reads.
_PAGE_ROWS = 2_000
Row = list[str | int]


def entry_rows(sponsor: Sponsor, *, since: datetime, until: datetime) -> Iterator[Row]:
    """Yield the headings, then each entry of the period; their sum is the change of the balance."""
    yield ["createdAt", "entry", "number", "source", "credits", "balanceBefore", "balanceAfter"]
    entries = CreditEntry.objects.filter(
        account__sponsor=sponsor, created_at__gte=since, created_at__lt=until
    )
    for entry in _paged(entries, "account_version"):
        yield [
            _time(entry.created_at),
            entry.pk,
            entry.account_version,
            entry.source,
            entry.amount,
            entry.balance_before,
            entry.balance_after,
        ]


def call_rows(sponsor: Sponsor, *, since: datetime, until: datetime) -> Iterator[Row]:
    """
    Yield the headings, then each call accepted in the period, with the credits charged to the sponsor or still held.

    A charged call has the id of its entry. Users appear under the pseudonyms of `user_reference`.
    """
    yield ["acceptedAt", "policy", "version", "user", "status", "heldCredits", "credits", "entry"]
    calls = calls_of(sponsor, since=since, until=until).select_related("version__policy", "sponsor_hold")
    for call in _paged(calls, "pk"):
        hold = call.sponsor_hold
        yield [
            _time(call.accepted_at),
            call.version.policy.name,
            call.version.number,
            user_reference(sponsor, call.user_id),
            hold.status.lower(),
            hold.amount,
            call.counted_credits,
            hold.entry_id or "",
        ]


def _paged(rows: QuerySet[Any], key: str) -> Iterator[Any]:
    last = 0
    while page := list(rows.filter(**{f"{key}__gt": last}).order_by(key)[:_PAGE_ROWS]):
        yield from page
        last = getattr(page[-1], key)


def _time(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="seconds")
