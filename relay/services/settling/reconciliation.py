"""
Compare the credits captured for calls with the gas that the chain charged for them.

The first comparison is among our own rows, in one statement and therefore one snapshot: the captured amount follows
from the stored receipt and the hold. The second compares stored receipts and relayers with the nodes, in batches.
"""

import logging
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.conf import settings
from django.db import connection, transaction

from credits.models import HoldStatus, ReconciliationRun
from credits.services.reconciliation import Comparison, run
from gateway.chain.client import get_chain_client
from gateway.chain.config import get_chain
from gateway.chain.types import ChainView, Receipt
from gateway.common import db
from relay.models import IN_PROGRESS_SQL, Attempt, RelayTransaction
from relay.pricing import cost_in_credits
from relay.services.sending import cancellation
from relay.services.settling.reorganisations import OVERTAKEN

logger = logging.getLogger(__name__)
DAYS = 40
# Receipts are compared every night, so this covers one missed night.
RECEIPT_DAYS = 2
BATCH_SIZE = 200

_FIND_DIFFERENCES = f"""
WITH settled AS (
    SELECT call.id, call.status, call.settled_at, call.real_cost, hold.id AS hold_id,
           hold.amount + coalesce(of_sponsor.amount, 0) AS amount,
           coalesce(hold.captured_amount, 0) + coalesce(of_sponsor.captured_amount, 0) AS captured,
           of_sponsor.id AS sponsor_hold_id, of_sponsor.amount AS sponsor_amount,
           coalesce(of_sponsor.captured_amount, 0) AS sponsor_captured,
           ceil(call.real_cost * version.share_percent / 100.0) AS sponsor_part,
           mined.succeeded, mined.id AS attempt_id,
           CASE WHEN mined.kind = '{Attempt.Kind.CALL}' AND call.failure_code <> '{OVERTAKEN}'
                THEN ceil(mined.gas_used::numeric * mined.effective_gas_price_wei / %(credit_wei)s)
                ELSE 0 END AS cost
    FROM relay_relaytransaction AS call
    JOIN credits_hold AS hold ON hold.id = call.hold_id
    LEFT JOIN sponsors_sponsoredcall AS sponsored ON sponsored.hold_id = hold.id
    LEFT JOIN sponsors_policyversion AS version ON version.id = sponsored.version_id
    LEFT JOIN credits_hold AS of_sponsor ON of_sponsor.id = sponsored.sponsor_hold_id
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
SELECT 'a sponsor pays its part, and never more than was held for it', id, sponsor_hold_id,
       least(sponsor_part, sponsor_amount), sponsor_captured
FROM settled WHERE sponsor_captured <> least(sponsor_part, sponsor_amount)
UNION ALL
SELECT 'a sponsor''s hold is open while its call is in progress', call.id, of_sponsor.id,
       (call.status IN {IN_PROGRESS_SQL})::integer, (of_sponsor.status = '{HoldStatus.HELD}')::integer
FROM sponsors_sponsoredcall AS sponsored
JOIN credits_hold AS of_sponsor ON of_sponsor.id = sponsored.sponsor_hold_id
JOIN relay_relaytransaction AS call ON call.hold_id = sponsored.hold_id
WHERE (call.status IN {IN_PROGRESS_SQL}) <> (of_sponsor.status = '{HoldStatus.HELD}')
UNION ALL
SELECT 'a success was mined, and succeeded', id, attempt_id, 1, CASE WHEN succeeded THEN 1 ELSE 0 END
FROM settled WHERE status = '{RelayTransaction.Status.SUCCESS}' AND succeeded IS NOT TRUE
UNION ALL
SELECT 'a call in progress has an open hold', call.id, hold.id, 1, 0
FROM relay_relaytransaction AS call JOIN credits_hold AS hold ON hold.id = call.hold_id
WHERE call.status IN {IN_PROGRESS_SQL} AND hold.status <> '{HoldStatus.HELD}'
UNION ALL
SELECT 'an open hold has a call in progress', call.id, hold.id, 0, hold.amount
FROM credits_hold AS hold LEFT JOIN relay_relaytransaction AS call ON call.hold_id = hold.id
WHERE hold.status = '{HoldStatus.HELD}' AND hold.key LIKE 'relay:%%'
    AND (call.id IS NULL OR call.status NOT IN {IN_PROGRESS_SQL})
UNION ALL
SELECT 'a mined attempt has a whole receipt', relay_transaction_id, id, 1, 0
FROM relay_attempt
WHERE status = '{Attempt.Status.MINED}' AND (block_number IS NULL OR block_hash = '' OR succeeded IS NULL
    OR gas_used IS NULL OR effective_gas_price_wei IS NULL)
ORDER BY 2, 3, 1
"""  # noqa: S608 - constants of our own

# Attempts of a batch of settled calls whose blocks are final; without a final block, of all settled calls.
_SETTLED = f"""
SELECT call.id, call.failure_code, call.real_cost, attempt.id, attempt.kind, attempt.transaction_hash,
       attempt.status = '{Attempt.Status.MINED}', attempt.block_number, attempt.block_hash, attempt.succeeded,
       attempt.gas_used, attempt.effective_gas_price_wei
FROM (
    SELECT id, failure_code, real_cost FROM relay_relaytransaction AS call
    WHERE chain_id = %(chain)s AND id > %(last)s AND settled_at >= %(since)s
      AND created_at >= %(since)s::timestamptz - interval '1 day' AND NOT EXISTS (
        SELECT FROM relay_attempt AS young JOIN relay_finalblock AS final ON final.chain_id = young.chain_id
        WHERE young.relay_transaction_id = call.id AND young.block_number > final.number
    )
    ORDER BY id LIMIT %(most)s
) AS call
JOIN relay_attempt AS attempt ON attempt.relay_transaction_id = call.id
ORDER BY call.id, attempt.id
"""  # noqa: S608 - constants of our own

# For each relayer: the account nonces taken, those of final attempts, the balance, and whether it is idle.
_RELAYERS = f"""
SELECT relayer.id, relayer.address, relayer.next_account_nonce, coalesce((
           SELECT account_nonce + 1 FROM relay_attempt AS attempt
           LEFT JOIN relay_finalblock AS final ON final.chain_id = attempt.chain_id
           WHERE attempt.relayer_id = relayer.id AND attempt.status = '{Attempt.Status.MINED}'
             AND (final.number IS NULL OR attempt.block_number <= final.number)
           ORDER BY account_nonce DESC LIMIT 1
       ), 0), relayer.balance_wei, relayer.next_account_nonce <= relayer.mined_account_nonce
FROM relay_relayer AS relayer
WHERE relayer.chain_id = %(chain)s AND relayer.retired_at IS NULL AND relayer.synced_at IS NOT NULL
ORDER BY relayer.id
"""  # noqa: S608 - constants of our own

_COUNT = f"""
SELECT count(*) FILTER (WHERE settled_at IS NOT NULL), count(*) FILTER (WHERE settled_at IS NULL),
       (SELECT count(*) FROM relay_attempt WHERE status = '{Attempt.Status.MINED}'),
       (SELECT count(*) FROM credits_hold WHERE status = '{HoldStatus.HELD}' AND key LIKE 'relay:%%')
FROM relay_relaytransaction
"""  # noqa: S608 - constants of our own


class Finding(NamedTuple):
    """
    A broken rule: the call, the attempt or hold, and the expected and actual credits.

    For rules about existence, 1 means yes and 0 means no.
    """

    rule: str
    relay_transaction_id: int | None
    row_id: int | None
    expected: int
    actual: int


def find_differences(*, since: datetime) -> list[Finding]:
    """
    Return every difference, ordered by call.

    Costs are compared for calls settled since `since`, at the current `CREDIT_WEI`; all other
    rules cover all rows. A hold that staff released, as the audit log shows, is not reported.
    """
    with transaction.atomic(), connection.cursor() as cursor:
        # Reading all calls takes longer than the statement timeout of requests.
        cursor.execute("SET LOCAL statement_timeout = '30min'")
        params: dict[str, Any] = {
            "credit_wei": settings.CREDIT_WEI,
            "since": since,
            "released": f'%"action": "{cancellation.RELEASED}"%',
        }
        cursor.execute(_FIND_DIFFERENCES, params)
        rows = cursor.fetchall()
    return [
        Finding(rule, call_id, row_id, int(expected), int(actual))
        for rule, call_id, row_id, expected, actual in rows
    ]


def compare_with_nodes(*, since: datetime) -> tuple[list[Finding], int]:
    """
    Compare final calls settled since `since`, and relayers, with the nodes; return findings and number of calls.

    The tracker compares the other calls at every block. Transactions that the nodes disagree about are left out.

    Raises:
        NodeUnavailable: no node answered.
    """
    before = _compare_relayers()
    findings: list[Finding] = []
    compared, last_id = 0, 0
    while rows := _settled_after(last_id, since):
        last_id = rows[-1].call_id
        view = _ask_nodes(transaction_hashes=[row.transaction_hash for row in rows])
        for row in rows:
            if row.transaction_hash not in view.undecided:
                findings += _differences(row, view.receipts.get(row.transaction_hash))
        compared += len({row.call_id for row in rows})
    # A relayer that was just topped up differs briefly, so a finding must occur twice.
    findings += [finding for finding in _compare_relayers() if finding in before]
    return findings, compared


class _Row(NamedTuple):
    """An attempt of a settled call, as stored."""

    call_id: int
    failure_code: str
    real_cost: int
    attempt_id: int
    kind: str
    transaction_hash: str
    is_mined: bool
    block_number: int | None
    block_hash: str
    succeeded: bool | None
    gas_used: int | None
    price_wei: int | None


def _settled_after(last_id: int, since: datetime) -> list[_Row]:
    params = {"chain": get_chain().id, "since": since, "last": last_id, "most": BATCH_SIZE}
    return [_Row._make(row) for row in db.all_rows(_SETTLED, params)]


def _ask_nodes(*, transaction_hashes: Sequence[str] = (), accounts: Sequence[str] = ()) -> ChainView:
    return get_chain_client().read_chain(
        transaction_hashes=transaction_hashes, accounts=accounts, confirmations=get_chain().confirmations
    )


def _differences(row: _Row, receipt: Receipt | None) -> Iterator[Finding]:
    """Yield the differences between a stored attempt and the nodes' receipt, None if they have none."""
    if receipt is None or not row.is_mined:
        if row.is_mined or receipt is not None:
            rule = "an attempt is mined here if the nodes have its receipt"
            yield Finding(rule, row.call_id, row.attempt_id, int(receipt is not None), int(row.is_mined))
        return
    cost = 0
    if row.kind == Attempt.Kind.CALL and row.failure_code != OVERTAKEN:
        price, credit = receipt.effective_gas_price_wei, settings.CREDIT_WEI
        cost = cost_in_credits(gas=receipt.gas_used, price_wei=price, credit_wei=credit)
    pairs = {
        "an attempt succeeded if the nodes report success": (receipt.succeeded, row.succeeded),
        "the gas used is what the nodes report": (receipt.gas_used, row.gas_used),
        "the gas price is what the nodes report": (receipt.effective_gas_price_wei, row.price_wei),
        "the cost follows from the nodes' receipt": (cost, row.real_cost),
    }
    if receipt.block_hash != row.block_hash:
        rule = "a mined attempt is in the block that the nodes report"
        yield Finding(rule, row.call_id, row.attempt_id, receipt.block_number, row.block_number or 0)
    for rule, (reported, stored) in pairs.items():
        if reported != stored:
            yield Finding(rule, row.call_id, row.attempt_id, int(reported), int(stored or 0))


def _compare_relayers() -> list[Finding]:
    params = {"chain": get_chain().id}
    before = db.all_rows(_RELAYERS, params)
    if not before:
        return []
    view = _ask_nodes(accounts=[row[1] for row in before])
    findings = []
    for old, new in zip(before, db.all_rows(_RELAYERS, params), strict=False):
        row_id, address, _, mined_nonces, balance_wei, is_idle = old
        account = view.account(address)
        # The rows were read before and after the chain, so the chain's number must lie between theirs.
        if account.latest_nonce < mined_nonces:
            rule = "the chain has used the account nonces of all mined attempts"
            findings.append(Finding(rule, None, row_id, account.latest_nonce, mined_nonces))
        if account.latest_nonce > new[2]:
            rule = "the chain has used no account nonce that was not taken here"
            findings.append(Finding(rule, None, row_id, account.latest_nonce, new[2]))
        if is_idle and new == old and account.balance_wei != balance_wei:
            rule = "a relayer with nothing in flight has the balance that the nodes report, in wei"
            findings.append(Finding(rule, None, row_id, account.balance_wei, int(balance_wei)))
    return findings


def reconcile(
    *, now: datetime, days: int = DAYS, receipt_days: int = RECEIPT_DAYS
) -> ReconciliationRun | None:
    """
    Run both comparisons, store and log the differences; return None if a run is in progress.

    Costs are compared for calls settled in the last `days` days, receipts for those of the last
    `receipt_days` days.

    Raises:
        NodeUnavailable: no node answered; the stored run stays unfinished.
    """

    def compare() -> Comparison:
        return _compare(now - timedelta(days=days), now - timedelta(days=receipt_days))

    return run(kind=ReconciliationRun.Kind.CHAIN, compare=compare, now=now)


def _compare(since: datetime, receipts_since: datetime) -> Comparison:
    of_nodes, compared = compare_with_nodes(since=receipts_since)
    findings = find_differences(since=since) + of_nodes
    for finding in findings:
        logger.error("relay reconciliation: %s", finding)
    described = [
        {
            "rule": finding.rule,
            "have": str(finding.actual),
            "wanted": str(finding.expected),
            "ids": {"call": str(finding.relay_transaction_id or ""), "row": str(finding.row_id or "")},
        }
        for finding in findings
    ]
    return Comparison({**_counts(), "calls compared with the nodes": compared}, described)


def _counts() -> dict[str, int]:
    with connection.cursor() as cursor:
        cursor.execute(_COUNT, [])
        [row] = cursor.fetchall()
    return dict(zip(("settled calls", "calls in progress", "mined attempts", "open holds"), row, strict=True))
