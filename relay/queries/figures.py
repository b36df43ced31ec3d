"""Figures of the whole relay, for metrics and staff."""

from datetime import datetime, timedelta
from typing import NamedTuple

from django.db.models import Count

from gateway.common import db
from gateway.common.statements import Statements
from relay.models import (
    SQL,
    Relayer,
    RelayTransaction,
    Treasury,
    current_chain_id,
)


class _Sql(Statements, file=__file__, shared=SQL):
    counts: str
    top_ups: str


class RelayCounts(NamedTuple):
    """Counts of relay calls in progress. Ages are in seconds, 0 if no call waits."""

    pending: int
    submitted: int
    # Age of the oldest call in progress, since it was accepted.
    oldest_age: float
    # Age of the oldest attempt that was never sent, since it was signed.
    unsent_age: float
    # Age of the oldest call without a mined attempt, since its first broadcast; replacements do not reset it.
    unmined_age: float


def relay_counts() -> RelayCounts:
    """Return the current chain's snapshot in one statement, which reads only calls in progress."""
    return RelayCounts(*db.only_row(_Sql.counts, {"chain": current_chain_id()}))


# Longer than any call takes to end: the index has the time of acceptance, and `ended` filters by that of settlement.
_LONGEST = timedelta(days=1)


def ended(*, since: datetime) -> dict[str, int]:
    """Return how many calls of the current chain ended since `since`, by final status, including statuses with 0."""
    settled = RelayTransaction.objects.filter(
        chain_id=current_chain_id(), created_at__gte=since - _LONGEST, settled_at__gte=since
    )
    counts = dict(settled.values_list("status").annotate(Count("id")).order_by("status"))
    final = set(RelayTransaction.Status) - set(RelayTransaction.IN_PROGRESS)
    return {status.value: counts.get(status.value, 0) for status in sorted(final)}


def unretired_relayers() -> list[Relayer]:
    """Return every relayer that is not retired, of all chains."""
    return list(Relayer.objects.filter(retired_at__isnull=True).order_by("pk"))


def treasuries() -> list[Treasury]:
    """Return the accounts that fund relayers, one for each chain."""
    return list(Treasury.objects.order_by("pk"))


def top_ups(*, since: datetime) -> tuple[int, float]:
    """
    Return the wei that the treasury has sent since `since`, and the age of the transfer in flight in seconds.

    The age counts from the first transfer on its account nonce; replacements do not reset it. It is 0 if no transfer
    is in flight.
    """
    paid_wei, age = db.only_row(_Sql.top_ups, {"chain": current_chain_id(), "since": since})
    return int(paid_wei), float(age)
