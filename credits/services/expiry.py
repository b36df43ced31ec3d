"""
Given credits expire if staff have set a rule. Expiry is announced 14 days before; paid and held credits never expire.
First credits expire by the terms under which they were given, with or without a rule.

Lots are computed from an account's entries without a lock, and an expiry is posted only if the account has not changed
since. If it has, the next run posts the expiry.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import groupby
from typing import NamedTuple

from django.db import transaction
from django.db.models import QuerySet

from credits.lots import EXPIRY, PAID_SOURCES, Lots, Posting
from credits.models import CreditAccount, CreditEntry, EntrySource, ExpiringLot, ExpiryRule
from credits.queries import POSTING
from credits.services.statements import Sql
from gateway.common import db
from users.models import User

NOTICE = timedelta(days=14)
_GIVEN = [
    source for source in EntrySource.values if source not in {*PAID_SOURCES, EntrySource.RELAY_REVERSAL}
]
_BATCH = 200


class ExpiringCredits(NamedTuple):
    """The remaining credits of a lot whose expiry was announced."""

    credits: int
    source: str
    expires_at: datetime


def lifetime(*, now: datetime) -> timedelta | None:
    """Return how long given credits are valid, or None if they do not expire."""
    rule = ExpiryRule.objects.filter(valid_from__lte=now).order_by("-valid_from").first()
    return timedelta(days=rule.days) if rule and rule.days else None


def announce(*, now: datetime) -> int:
    """
    Announce the expiry of given lots that expire within 14 days; return how many are new.

    A lot that is already too old when a rule begins gets 14 days.
    """
    valid = lifetime(now=now)
    if valid is None:
        return 0
    old = now + NOTICE - valid
    accounts = CreditEntry.objects.filter(
        source__in=_GIVEN, amount__gt=0, created_at__lte=old, expiry=None, account__balance__gt=0,
        account__user__isnull=False,
    )  # fmt: skip
    announced = 0
    for account_ids in _batches(
        list(accounts.values_list("account", flat=True).distinct().order_by("account"))
    ):
        posted = CreditEntry.objects.filter(account__in=account_ids, source__in=_GIVEN, amount__gt=0)
        dates = dict(posted.filter(created_at__lte=old, expiry=None).values_list("pk", "created_at"))
        rows = [
            ExpiringLot(
                entry_id=lot.entry_id,
                credits=lot.remaining,
                expires_at=max(dates[lot.entry_id] + valid, now + NOTICE),
                announced_at=now,
            )
            for _, lots in _lots(account_ids)
            for lot in lots.in_order()
            if lot.entry_id in dates
        ]
        with transaction.atomic(durable=True):
            ExpiringLot.objects.bulk_create(rows, ignore_conflicts=True)
        announced += len(rows)
    return announced


def expiring_of(*, user: User, now: datetime) -> list[ExpiringCredits]:
    """Return the remaining credits of the user's lots whose announced expiry is in the future, soonest first."""
    announced = ExpiringLot.objects.filter(entry__account__user=user, expires_at__gt=now).order_by(
        "expires_at", "entry_id"
    )
    rows = list(_in_force(announced, now).values_list("entry__account", "entry_id", "expires_at"))
    if not rows:
        return []
    [(_, lots)] = _lots([rows[0][0]])
    found = [(lots.lot_of(entry_id), expires_at) for _, entry_id, expires_at in rows]
    return [
        ExpiringCredits(lot.remaining, lot.source, expires_at)
        for lot, expires_at in found
        if lot and lot.remaining
    ]


def expire(*, now: datetime) -> int:
    """Post the expiry of each lot's remaining credits when their announced time is over; return how many entries."""
    over = _in_force(ExpiringLot.objects.filter(expires_at__lte=now, entry__account__balance__gt=0), now)
    account_ids = over.values_list("entry__account", flat=True).distinct().order_by("entry__account")
    return sum(_expire(batch, now) for batch in _batches(list(account_ids)))


def _in_force(lots: QuerySet[ExpiringLot], now: datetime) -> QuerySet[ExpiringLot]:
    """Without a rule, only first credits expire."""
    return lots.filter(entry__source=EntrySource.FIRST_CREDITS) if lifetime(now=now) is None else lots


def _expire(account_ids: list[int], now: datetime) -> int:
    over = _in_force(ExpiringLot.objects.filter(expires_at__lte=now, entry__account__in=account_ids), now)
    due = set(over.values_list("entry_id", flat=True))
    accounts = CreditAccount.objects.in_bulk(account_ids)
    times = _times_expired(account_ids)
    rows = [
        (account_id, accounts[account_id].version, accounts[account_id].held, left, lot.entry_id)
        for account_id, lots in _lots(account_ids)
        for lot, left in lots.unheld(accounts[account_id].held)
        if lot.entry_id in due and not lot.is_paid
    ]
    if not rows:
        return 0
    owners, versions, held, left_over, entry_ids = zip(*rows, strict=True)
    params = {
        "accounts": list(owners),
        "versions": list(versions),
        "held": list(held),
        "credits": list(left_over),
        "keys": [f"expiry:{entry_id}:{times.get(entry_id, 0)}" for entry_id in entry_ids],
    }
    with transaction.atomic(durable=True):
        return len(db.all_rows(Sql.expire, params))


def _lots(account_ids: list[int]) -> Iterator[tuple[int, Lots]]:
    """Yield the lots of each account."""
    rows = CreditEntry.objects.filter(account__in=account_ids).order_by("account_id", "account_version")
    values = rows.values_list("account_id", *POSTING).iterator(chunk_size=5_000)
    for account_id, own in groupby(values, key=lambda row: row[0]):
        yield account_id, Lots(Posting(*row[1:]) for row in own)


def _times_expired(account_ids: list[int]) -> dict[int, int]:
    """Return how often each lot has expired; a lot expires again if credits return to it."""
    keys = CreditEntry.objects.filter(account__in=account_ids, source=EXPIRY).values_list("key", flat=True)
    times: dict[int, int] = {}
    for key in keys:
        entry_id = int(key.split(":")[1])
        times[entry_id] = times.get(entry_id, 0) + 1
    return times


def _batches(ids: list[int]) -> Iterator[list[int]]:
    for start in range(0, len(ids), _BATCH):
        yield ids[start : start + _BATCH]
