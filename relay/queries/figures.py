"""Figures of the whole relay, for metrics and staff."""

from datetime import datetime, timedelta
from typing import NamedTuple

from django.db.models import Count

from gateway.common import db
from relay.models import (
    IN_PROGRESS_SQL,
    Attempt,
    Relayer,
    RelayTransaction,
    TopUp,
    Treasury,
    current_chain_id,
    sql_values,
)

_STATUS = RelayTransaction.Status


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
    """Return the snapshot in one statement, which reads only calls in progress."""
    return RelayCounts(*db.only_row(_COUNTS, {}))


_COUNTS = f"""
WITH call AS MATERIALIZED (
    SELECT id, status, created_at FROM relay_relaytransaction WHERE status IN {IN_PROGRESS_SQL}
), attempt AS MATERIALIZED (
    SELECT attempt.relay_transaction_id AS call_id, attempt.status, attempt.created_at, attempt.first_sent_at
    FROM call JOIN relay_attempt AS attempt ON attempt.relay_transaction_id = call.id
), oldest AS (
    SELECT (SELECT min(created_at) FROM call) AS accepted_at,
           (SELECT min(created_at) FROM attempt WHERE status = '{Attempt.Status.SIGNED}') AS signed_at,
           (SELECT min(first_sent_at) FROM attempt
            WHERE call_id NOT IN (SELECT call_id FROM attempt WHERE status = '{Attempt.Status.MINED}')) AS sent_at
)
SELECT (SELECT count(*) FROM call WHERE status = '{_STATUS.PENDING}'),
       (SELECT count(*) FROM call WHERE status = '{_STATUS.SUBMITTED}'),
       coalesce(greatest(0, extract(epoch FROM statement_timestamp() - accepted_at)), 0)::float,
       coalesce(greatest(0, extract(epoch FROM statement_timestamp() - signed_at)), 0)::float,
       coalesce(greatest(0, extract(epoch FROM statement_timestamp() - sent_at)), 0)::float
FROM oldest
"""  # noqa: S608 - constants of our own

# Longer than any call takes to end: the index has the time of acceptance, and `ended` filters by that of settlement.
_LONGEST = timedelta(days=1)


def ended(*, since: datetime) -> dict[str, int]:
    """Return the number of calls that ended since `since`, by final status, including statuses with 0."""
    settled = RelayTransaction.objects.filter(created_at__gte=since - _LONGEST, settled_at__gte=since)
    counts = dict(settled.values_list("status").annotate(Count("id")).order_by("status"))
    final = set(RelayTransaction.Status) - set(RelayTransaction.IN_PROGRESS)
    return {status.value: counts.get(status.value, 0) for status in sorted(final)}


def unretired_relayers() -> list[Relayer]:
    """Return every relayer that is not retired."""
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
    paid_wei, age = db.only_row(_TOP_UPS, {"chain": current_chain_id(), "since": since})
    return int(paid_wei), float(age)


_TOP_UPS = f"""
SELECT (SELECT coalesce(sum(amount_wei), 0) FROM relay_topup
        WHERE chain_id = %(chain)s AND created_at >= %(since)s
          AND status IN {sql_values(TopUp.Status.SENT, TopUp.Status.MINED)}),
       (SELECT coalesce(greatest(0, extract(epoch FROM statement_timestamp() - min(first.created_at))), 0)::float
        FROM relay_topup AS sent JOIN relay_topup AS first USING (chain_id, treasury_address, account_nonce)
        WHERE sent.chain_id = %(chain)s AND sent.status = '{TopUp.Status.SENT}')
"""  # noqa: S608 - constants of our own
