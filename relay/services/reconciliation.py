"""
Does what the chain took in gas agree with what was captured for it?

Everything is read from our own rows, in one statement and so as of one moment. Receipts are
stored as the chain returned them; the captured amount follows from the receipt and the hold.
"""

import logging
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.conf import settings
from django.db import connection, transaction

from credits.models import LedgerAudit
from credits.services.reconciliation import Compared, keep
from gateway.common.tasks import enqueue_now
from relay.services import cancellation

logger = logging.getLogger(__name__)
DAYS = 40

_FIND_DIFFERENCES = """
WITH settled AS (
    SELECT asked.id, asked.status, asked.settled_at, asked.real_cost, hold.id AS hold_id, hold.amount,
           coalesce(hold.captured_amount, 0) AS captured, hold.status AS hold_status,
           landed.succeeded, landed.id AS attempt_id,
           CASE WHEN landed.kind = 'call'
                THEN ceil(landed.gas_used::numeric * landed.effective_gas_price_wei / %(credit_wei)s)
                ELSE 0 END AS cost
    FROM relay_relaytransaction AS asked
    JOIN credits_hold AS hold ON hold.id = asked.hold_id
    LEFT JOIN relay_attempt AS landed ON landed.transaction_hash = asked.transaction_hash
         AND landed.relay_transaction_id = asked.id AND landed.status = 'mined'
    WHERE asked.settled_at IS NOT NULL
), given_up AS (
    SELECT object_id FROM django_admin_log
    WHERE content_type_id = (
        SELECT id FROM django_content_type WHERE app_label = 'credits' AND model = 'credithold'
    ) AND change_message LIKE %(released)s
)
SELECT 'the cost is the gas of the attempt that landed, at its price', id, attempt_id, cost, real_cost::numeric
FROM settled WHERE settled_at >= %(since)s AND real_cost <> cost
UNION ALL
SELECT 'captured is the cost, and never more than was held', id, hold_id, least(real_cost, amount), captured
FROM settled WHERE captured <> least(real_cost, amount)
    AND NOT (captured = 0 AND hold_id::text IN (SELECT object_id FROM given_up))
UNION ALL
SELECT 'a success landed, and succeeded', id, attempt_id, 1, CASE WHEN succeeded THEN 1 ELSE 0 END
FROM settled WHERE status = 'Success' AND succeeded IS NOT TRUE
UNION ALL
SELECT 'a call in progress has an open hold', asked.id, hold.id, 1, 0
FROM relay_relaytransaction AS asked JOIN credits_hold AS hold ON hold.id = asked.hold_id
WHERE asked.status IN ('Pending', 'Submitted') AND hold.status <> 'HELD'
UNION ALL
SELECT 'an open hold has a call in progress', asked.id, hold.id, 0, hold.amount
FROM credits_hold AS hold LEFT JOIN relay_relaytransaction AS asked ON asked.hold_id = hold.id
WHERE hold.status = 'HELD' AND hold.key LIKE 'relay:%%'
    AND (asked.id IS NULL OR asked.status NOT IN ('Pending', 'Submitted'))
UNION ALL
SELECT 'a mined attempt has a whole receipt', relay_transaction_id, id, 1, 0
FROM relay_attempt
WHERE status = 'mined' AND (block_number IS NULL OR block_hash = '' OR succeeded IS NULL OR gas_used IS NULL
    OR effective_gas_price_wei IS NULL)
ORDER BY 2, 3, 1
"""

_COUNT = """
SELECT count(*) FILTER (WHERE settled_at IS NOT NULL), count(*) FILTER (WHERE settled_at IS NULL),
       (SELECT count(*) FROM relay_attempt WHERE status = 'mined'),
       (SELECT count(*) FROM credits_hold WHERE status = 'HELD' AND key LIKE 'relay:%%')
FROM relay_relaytransaction
"""


class Finding(NamedTuple):
    """
    A broken rule: for which call, at which attempt or hold, and the credits expected and found.

    Where a rule is about existence, 1 means yes and 0 means no.
    """

    rule: str
    relay_transaction_id: int | None
    row_id: int | None
    expected: int
    found: int


def find_differences(*, since: datetime) -> list[Finding]:
    """
    Return every difference, by call; an empty list is a sound relay.

    Costs are compared for calls settled `since` then, at today's `CREDIT_WEI`; everything else
    for all time. A hold that staff have released for good, on record, is no difference.
    """
    with transaction.atomic(), connection.cursor() as cursor:
        # Reading all calls takes longer than any request may.
        cursor.execute("SET LOCAL statement_timeout = '30min'")
        params: dict[str, Any] = {
            "credit_wei": settings.CREDIT_WEI,
            "since": since,
            "released": f'%"action": "{cancellation.RELEASED}"%',
        }
        cursor.execute(_FIND_DIFFERENCES, params)
        rows = cursor.fetchall()
    return [
        Finding(rule, call_id, row_id, int(expected), int(found))
        for rule, call_id, row_id, expected, found in rows
    ]


def reconcile(*, now: datetime, days: int = DAYS) -> LedgerAudit | None:
    """Compare, store and log what differs; None where that is under way. Costs are compared of the last `days`."""
    return keep(
        kind=LedgerAudit.Kind.CHAIN,
        lock="relay.reconcile",
        compare=lambda: _compare(now - timedelta(days=days)),
        now=now,
    )


def ask_for_a_run() -> None:
    """
    Let a worker compare; a run that is under way is not doubled.

    Raises:
        WorkersUnreachable: the broker is away, so no worker was asked.
    """
    enqueue_now("relay.reconcile")


def _compare(since: datetime) -> Compared:
    findings = find_differences(since=since)
    for finding in findings:
        logger.error("relay reconciliation: %s", finding)
    described = [
        {
            "rule": finding.rule,
            "have": str(finding.found),
            "wanted": str(finding.expected),
            "ids": {"call": str(finding.relay_transaction_id or ""), "row": str(finding.row_id or "")},
        }
        for finding in findings
    ]
    return Compared(_counts(), described)


def _counts() -> dict[str, int]:
    with connection.cursor() as cursor:
        cursor.execute(_COUNT, [])
        [row] = cursor.fetchall()
    return dict(zip(("settled calls", "calls in progress", "mined attempts", "open holds"), row, strict=True))
