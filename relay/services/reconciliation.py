"""
Compare the credits captured for calls with the gas that the chain charged for them.

Everything is read from our own rows, in one statement and so as of one moment. Receipts are
stored as the chain returned them; the captured amount follows from the receipt and the hold.
"""

import logging
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.conf import settings
from django.db import connection, transaction

from credits.models import HoldStatus, ReconciliationRun
from credits.services.reconciliation import Comparison, run
from relay.models import Attempt, RelayTransaction, sql_values
from relay.services import cancellation
from relay.services.reorganisations import OVERTAKEN

logger = logging.getLogger(__name__)
DAYS = 40
_IN_PROGRESS = sql_values(*RelayTransaction.IN_PROGRESS)

_FIND_DIFFERENCES = f"""
WITH settled AS (
    SELECT call.id, call.status, call.settled_at, call.real_cost, hold.id AS hold_id, hold.amount,
           coalesce(hold.captured_amount, 0) AS captured, hold.status AS hold_status,
           mined.succeeded, mined.id AS attempt_id,
           CASE WHEN mined.kind = '{Attempt.Kind.CALL}' AND call.failure_code <> '{OVERTAKEN}'
                THEN ceil(mined.gas_used::numeric * mined.effective_gas_price_wei / %(credit_wei)s)
                ELSE 0 END AS cost
    FROM relay_relaytransaction AS call
    JOIN credits_hold AS hold ON hold.id = call.hold_id
    LEFT JOIN relay_attempt AS mined ON mined.relay_transaction_id = call.id
         AND mined.chain_id = call.chain_id AND mined.transaction_hash = call.transaction_hash
         AND mined.status = '{Attempt.Status.MINED}'
    WHERE call.settled_at IS NOT NULL
), released AS (
    SELECT object_id FROM django_admin_log
    WHERE content_type_id = (
        SELECT id FROM django_content_type WHERE app_label = 'credits' AND model = 'credithold'
    ) AND change_message LIKE %(released)s
)
SELECT 'the cost is the gas of the attempt that was mined, at its price', id, attempt_id, cost, real_cost::numeric
FROM settled WHERE settled_at >= %(since)s AND real_cost <> cost
UNION ALL
SELECT 'captured is the cost, and never more than was held', id, hold_id, least(real_cost, amount), captured
FROM settled WHERE captured <> least(real_cost, amount)
    AND NOT (captured = 0 AND hold_id::text IN (SELECT object_id FROM released))
UNION ALL
SELECT 'a success was mined, and succeeded', id, attempt_id, 1, CASE WHEN succeeded THEN 1 ELSE 0 END
FROM settled WHERE status = '{RelayTransaction.Status.SUCCESS}' AND succeeded IS NOT TRUE
UNION ALL
SELECT 'a call in progress has an open hold', call.id, hold.id, 1, 0
FROM relay_relaytransaction AS call JOIN credits_hold AS hold ON hold.id = call.hold_id
WHERE call.status IN {_IN_PROGRESS} AND hold.status <> '{HoldStatus.HELD}'
UNION ALL
SELECT 'an open hold has a call in progress', call.id, hold.id, 0, hold.amount
FROM credits_hold AS hold LEFT JOIN relay_relaytransaction AS call ON call.hold_id = hold.id
WHERE hold.status = '{HoldStatus.HELD}' AND hold.key LIKE 'relay:%%'
    AND (call.id IS NULL OR call.status NOT IN {_IN_PROGRESS})
UNION ALL
SELECT 'a mined attempt has a whole receipt', relay_transaction_id, id, 1, 0
FROM relay_attempt
WHERE status = '{Attempt.Status.MINED}' AND (block_number IS NULL OR block_hash = '' OR succeeded IS NULL
    OR gas_used IS NULL OR effective_gas_price_wei IS NULL)
ORDER BY 2, 3, 1
"""  # noqa: S608 - constants of our own

_COUNT = f"""
SELECT count(*) FILTER (WHERE settled_at IS NOT NULL), count(*) FILTER (WHERE settled_at IS NULL),
       (SELECT count(*) FROM relay_attempt WHERE status = '{Attempt.Status.MINED}'),
       (SELECT count(*) FROM credits_hold WHERE status = '{HoldStatus.HELD}' AND key LIKE 'relay:%%')
FROM relay_relaytransaction
"""  # noqa: S608 - constants of our own


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
    Return every difference, by call; none where everything agrees.

    Costs are compared for calls settled `since` then, at today's `CREDIT_WEI`; everything else
    for all time. A hold whose release by staff is in the audit log is no difference.
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


def reconcile(*, now: datetime, days: int = DAYS) -> ReconciliationRun | None:
    """
    Compare, and store and log the differences; None where a run is under way.

    Costs are compared for calls settled in the last `days`.
    """
    return run(
        kind=ReconciliationRun.Kind.CHAIN, compare=lambda: _compare(now - timedelta(days=days)), now=now
    )


def _compare(since: datetime) -> Comparison:
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
    return Comparison(_counts(), described)


def _counts() -> dict[str, int]:
    with connection.cursor() as cursor:
        cursor.execute(_COUNT, [])
        [row] = cursor.fetchall()
    return dict(zip(("settled calls", "calls in progress", "mined attempts", "open holds"), row, strict=True))
