"""
Compare the credits captured for calls with the gas that the chain charged for them.

The first comparison is among our own rows, in one statement and therefore one snapshot: the captured amount follows
from the stored receipt and the hold. The second compares stored receipts and relayers with the nodes, in batches.
"""

import logging
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, NamedTuple

from django.db import connection, transaction

from credits.models import ReconciliationRun
from credits.services.reconciliation import Comparison, run
from gateway.chain.client import get_chain_client
from gateway.chain.config import chains, get_chain, home, on_chain
from gateway.chain.errors import NodeUnavailable
from gateway.chain.types import ChainView, Receipt
from gateway.common import db
from gateway.common.statements import Statements
from relay.models import SQL, UNCHARGED, Attempt
from relay.pricing import credits_of
from relay.services.sending import cancellation

logger = logging.getLogger(__name__)
DAYS = 40
# Receipts are compared every night, so this covers one missed night.
RECEIPT_DAYS = 2
BATCH_SIZE = 200


class _Sql(Statements, file=__file__, shared=SQL):
    find_differences: str
    settled: str
    relayers: str
    count: str


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

    Costs are compared for calls settled since `since`, at the price of a credit that each call keeps; all other
    rules cover all rows, of all chains. A hold that staff released, as the audit log shows, is not reported.
    """
    with transaction.atomic(), connection.cursor() as cursor:
        # Reading all calls takes longer than the statement timeout of requests.
        cursor.execute("SET LOCAL statement_timeout = '30min'")
        params: dict[str, Any] = {
            "since": since,
            "released": f'%"action": "{cancellation.RELEASED}"%',
        }
        cursor.execute(_Sql.find_differences, params)
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
        NodeUnavailable: no node responded.
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
    credit_wei: Decimal
    attempt_id: int
    kind: str
    transaction_hash: str
    is_mined: bool
    block_number: int | None
    block_hash: str
    succeeded: bool | None
    gas_used: int | None
    price_wei: int | None
    extra_fee_wei: int


def _settled_after(last_id: int, since: datetime) -> list[_Row]:
    params = {"chain": get_chain().id, "since": since, "last": last_id, "most": BATCH_SIZE}
    return [_Row._make(row) for row in db.all_rows(_Sql.settled, params)]


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
    if row.kind == Attempt.Kind.CALL and row.failure_code not in UNCHARGED:
        cost = credits_of(receipt.cost_wei, credit_wei=int(row.credit_wei))
    pairs = {
        "an attempt succeeded if the nodes report success": (receipt.succeeded, row.succeeded),
        "the gas used is what the nodes report": (receipt.gas_used, row.gas_used),
        "the gas price is what the nodes report": (receipt.effective_gas_price_wei, row.price_wei),
        "the fee besides gas is what the nodes report": (receipt.extra_fee_wei or 0, row.extra_fee_wei),
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
    before = db.all_rows(_Sql.relayers, params)
    if not before:
        return []
    view = _ask_nodes(accounts=[row[1] for row in before])
    findings = []
    for old, new in zip(before, db.all_rows(_Sql.relayers, params), strict=False):
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
        NodeUnavailable: no node responded; the stored run stays unfinished.
    """

    def compare() -> Comparison:
        return _compare(now - timedelta(days=days), now - timedelta(days=receipt_days))

    return run(kind=ReconciliationRun.Kind.CHAIN, compare=compare, now=now)


def _compare(since: datetime, receipts_since: datetime) -> Comparison:
    of_nodes, compared = compare_with_nodes(since=receipts_since)
    for chain in chains():
        if chain is not home():
            more, number = _compare_further(chain.id, receipts_since)
            of_nodes, compared = of_nodes + more, compared + number
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


def _compare_further(chain_id: int, since: datetime) -> tuple[list[Finding], int]:
    """Compare a further chain. If it is away, that is a finding, and the other chains are compared all the same."""
    try:
        with on_chain(chain_id):
            return compare_with_nodes(since=since)
    except NodeUnavailable:
        return [Finding(f"the nodes of chain {chain_id} respond", None, None, 1, 0)], 0


def _counts() -> dict[str, int]:
    with connection.cursor() as cursor:
        cursor.execute(_Sql.count, [])
        [row] = cursor.fetchall()
    return dict(zip(("settled calls", "calls in progress", "mined attempts", "open holds"), row, strict=True))
