"""
Verifies from outside: the chain by JSON-RPC, the rows by plain SQL, without any code of the service.

A call that got a hash must be on the chain exactly once, or have a terminal status that the chain proves.
It is charged once, for its gas rounded up. Totals equal the sums of their rows, and every account nonce is used.
"""

import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import psycopg
from eth_abi.abi import decode
from eth_utils.crypto import keccak
from psycopg.rows import dict_row

from devstack.rpc import Rpc

_EXECUTE = keccak(text="executeRelayCall(bytes,uint256,uint256,bytes)")[:4]
_BLOCKS_AT_ONCE = 50
_LONGEST_HOLD_SECONDS = 120
_POLL_SECONDS = 0.1

Key = tuple[str, int, bytes]


@dataclass(frozen=True)
class Acknowledged:
    """A submitted relay call and the hash in its response; None without a response."""

    key_manager: str
    nonce: int
    payload: bytes
    transaction_hash: str | None

    @property
    def key(self) -> Key:
        """Its identity: key manager and nonce."""
        return self.key_manager.lower(), self.nonce, self.payload


@dataclass(frozen=True)
class PaidInvoice:
    """An invoice that the payment provider has collected."""

    invoice_id: str
    amount_minor: int


@dataclass(frozen=True)
class Mined:
    """A transaction of a relayer in a block."""

    transaction_hash: str
    succeeded: bool
    cost_wei: int


@dataclass
class Result:
    """The differences found; empty if all is well."""

    lost: list[str] = field(default_factory=list)
    doubled: list[str] = field(default_factory=list)
    charged_wrongly: list[str] = field(default_factory=list)
    ledger_difference: int = 0
    nonce_gaps: list[str] = field(default_factory=list)
    longest_hold_seconds: float = 0

    @property
    def wrong(self) -> list[str]:
        """The differences, as text."""
        ledger = [f"ledger difference {self.ledger_difference}"] if self.ledger_difference else []
        long = self.longest_hold_seconds
        holds = [f"a hold was open for {long:.0f} s"] if long > _LONGEST_HOLD_SECONDS else []
        return [*self.lost, *self.doubled, *self.charged_wrongly, *self.nonce_gaps, *ledger, *holds]


class Chain:
    """All transactions of the relayers on the chain, read block by block."""

    def __init__(self, rpc: Rpc) -> None:
        self._rpc = rpc
        self._next = 0
        self.calls: dict[Key, list[Mined]] = defaultdict(list)
        self.by_nonce: dict[tuple[str, int], Mined] = {}
        self.others: set[str] = set()

    def read(self, relayers: Iterable[str]) -> None:
        """Read the new blocks."""
        addresses = {address.lower() for address in relayers}
        newest = int(self._rpc.call("eth_blockNumber"), 16)
        for first in range(self._next, newest + 1, _BLOCKS_AT_ONCE):
            numbers = range(first, min(first + _BLOCKS_AT_ONCE, newest + 1))
            blocks = self._rpc.batch([("eth_getBlockByNumber", hex(number), True) for number in numbers])
            transactions = [item for block in blocks for item in block["transactions"]]
            self._keep([item for item in transactions if item["from"].lower() in addresses])
        self._next = newest + 1

    def account_nonce(self, address: str) -> int:
        """Return the number of mined transactions of an account."""
        return int(self._rpc.call("eth_getTransactionCount", address, "latest"), 16)

    def _keep(self, transactions: Sequence[dict[str, Any]]) -> None:
        receipts = self._rpc.batch([("eth_getTransactionReceipt", item["hash"]) for item in transactions])
        for item, receipt in zip(transactions, receipts, strict=True):
            cost = int(receipt["gasUsed"], 16) * int(receipt["effectiveGasPrice"], 16)
            mined = Mined(item["hash"].lower(), receipt["status"] == "0x1", cost)
            self.by_nonce[item["from"].lower(), int(item["nonce"], 16)] = mined
            data = bytes.fromhex(item["input"][2:])
            if data[:4] == _EXECUTE:
                _, nonce, _, payload = decode(["bytes", "uint256", "uint256", "bytes"], data[4:])
                self.calls[item["to"].lower(), nonce, payload].append(mined)
            else:
                self.others.add(mined.transaction_hash)


class Verifier:
    """Compares responses with chain and rows."""

    def __init__(self, rpc: Rpc, *, credit_wei: int) -> None:
        self.chain = Chain(rpc)
        self._credit_wei = credit_wei

    def verify(self, database_url: str, calls: Sequence[Acknowledged], *, since: float) -> Result:
        """Verify calls and the whole ledger; only holds that were open after `since` (unix) count."""
        with psycopg.connect(database_url, row_factory=dict_row) as connection:
            relayers = connection.execute(_RELAYERS).fetchall()
            self.chain.read(row["address"] for row in relayers)
            rows = connection.execute(_CALLS, [_hashes_of(calls, self.chain)]).fetchall()
            sums = connection.execute(_LEDGER).fetchone() or {}
            longest = connection.execute(_LONGEST_HOLD, [since]).fetchone() or {}
        result = Result(
            ledger_difference=int(sums["difference"]),
            longest_hold_seconds=float(longest["seconds"] or 0),
        )
        by_hash = {row["transaction_hash"].lower(): row for row in rows}
        for call in calls:
            judge(call, self.chain, by_hash, result, credit_wei=self._credit_wei)
        for row in relayers:
            used, taken = self.chain.account_nonce(row["address"]), row["next_account_nonce"]
            if used != taken:
                result.nonce_gaps.append(
                    f"{row['address']}: {taken} account nonces assigned, {used} used on the chain"
                )
        return result


def judge(
    call: Acknowledged, chain: Chain, rows: dict[str, dict[str, Any]], result: Result, *, credit_wei: int
) -> None:
    """Add the differences of a call to the result; `rows` are attempts by hash."""
    mined = chain.calls.get(call.key, [])
    name = call.transaction_hash or f"unanswered call {call.nonce >> 128} of {call.key_manager}"
    if len(mined) > 1:
        result.doubled.append(f"{name} is on the chain {len(mined)} times")
    hashes = [one.transaction_hash for one in mined] + [(call.transaction_hash or "").lower()]
    row = next((rows[one] for one in hashes if one in rows), None)
    if row is None:
        if call.transaction_hash or mined:
            result.lost.append(f"{name} has no row")
        return
    if mined:
        expected = {"Success"} if mined[0].succeeded else {"Failed", "ExecutedExternally"}
        cost = -(-mined[0].cost_wei // credit_wei)
    else:
        slot = chain.by_nonce.get((row["relayer"].lower(), row["account_nonce"]))
        is_used_up = slot is not None and slot.transaction_hash in chain.others
        expected, cost = ({"Cancelled", "Expired"} if is_used_up else set()), 0
    if row["status"] not in expected:
        result.lost.append(f"{name} is {row['status']}; on the chain: {[vars(one) for one in mined]}")
    # The charge is at most the hold.
    charged, wanted = int(row["charged"]), min(cost, int(row["amount"]))
    if charged != wanted or row["entries"] != (1 if wanted else 0):
        result.charged_wrongly.append(
            f"{name} costs {wanted}, {charged} is charged in {row['entries']} entries"
        )


def in_progress(database_url: str) -> int:
    """Return the number of calls not yet settled or signed; 0 while the database is unavailable."""
    try:
        with psycopg.connect(database_url, autocommit=True) as connection:
            row = connection.execute(_IN_PROGRESS).fetchone()
    except psycopg.OperationalError:
        return 0
    return int(row[0]) if row else 0


def drained(database_url: str, *, seconds: float) -> bool:
    """Wait until no call is in progress; return False on timeout."""
    deadline = time.monotonic() + seconds
    while in_progress(database_url):
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL_SECONDS)
    return True


def verify_income(
    database_url: str,
    postbacks: Sequence[str],
    invoices: Sequence[PaidInvoice],
    result: Result,
    *,
    credits_per_major_unit: int,
) -> None:
    """Add the differences of answered postbacks and of payouts of paid invoices to the result."""
    with psycopg.connect(database_url, row_factory=dict_row) as connection:
        earned = connection.execute(_POSTBACKS, [list(postbacks)]).fetchall()
        paid = connection.execute(_PAYOUTS).fetchall()
        orphans = connection.execute(_ORPHANS).fetchone() or {}
    compare("postback", dict.fromkeys(postbacks), earned, result)
    worth = {one.invoice_id: one.amount_minor * credits_per_major_unit // 100 for one in invoices}
    compare("invoice", worth, paid, result)
    if orphans["number"]:
        result.doubled.append(f"{orphans['number']} entries of income belong to no postback and no payout")


def paid_out(database_url: str, invoices: Sequence[PaidInvoice]) -> int:
    """Return the number of these invoices with a payout."""
    with psycopg.connect(database_url, row_factory=dict_row) as connection:
        return len(
            {one.invoice_id for one in invoices} & {row["name"] for row in connection.execute(_PAYOUTS)}
        )


def compare(
    kind: str, promised: Mapping[str, int | None], rows: Sequence[dict[str, Any]], result: Result
) -> None:
    """
    Add the differences between promised credits, by name, and rows.

    Without a promised number, the row's own factors determine it.
    """
    by_name: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        by_name[row["name"]].append(row)
    for name, promise in promised.items():
        of_name = by_name.pop(name, [])
        given = [row["given"] for row in of_name]
        if not given:
            result.lost.append(f"{kind} {name} has no row")
        elif len(given) > 1:
            result.doubled.append(f"{kind} {name} has {len(given)} rows")
        elif given[0] != (of_name[0]["worth"] if promise is None else promise):
            result.charged_wrongly.append(f"{kind} {name} gave {given[0]} credits")
    result.doubled += [f"{kind} {name} was never paid" for name in by_name]


def _hashes_of(calls: Sequence[Acknowledged], chain: Chain) -> list[str]:
    mined = (one.transaction_hash for call in calls for one in chain.calls.get(call.key, []))
    return [*{call.transaction_hash.lower() for call in calls if call.transaction_hash}, *mined]


_IN_PROGRESS = """
SELECT (SELECT count(*) FROM relay_relaytransaction WHERE settled_at IS NULL)
     + (SELECT count(*) FROM relay_unsignedcall)
"""

_RELAYERS = "SELECT address, next_account_nonce FROM relay_relayer"

# The entries of a hold have the key `hold:ID` or `hold:ID:…`.
_CALLS = """
WITH charge AS (
    -- A reorganisation reverses a charge by an entry; both count.
    SELECT split_part(replace(key, 'reversal:', ''), ':', 2) AS hold_id, -sum(amount) AS charged,
           sum(-sign(amount)) AS entries
    FROM credits_entry WHERE key LIKE 'hold:%%' OR key LIKE 'reversal:hold:%%' GROUP BY hold_id
)
SELECT attempt.transaction_hash, attempt.account_nonce, relayer.address AS relayer, call.status, hold.amount,
       coalesce(charge.charged, 0) AS charged, coalesce(charge.entries, 0) AS entries
FROM relay_attempt AS attempt
JOIN relay_relayer AS relayer ON relayer.id = attempt.relayer_id
JOIN relay_relaytransaction AS call ON call.id = attempt.relay_transaction_id
JOIN credits_hold AS hold ON hold.id = call.hold_id
LEFT JOIN charge ON charge.hold_id = hold.id::text
WHERE attempt.transaction_hash = ANY(%s)
"""

# Compares accounts with their entries and open holds, and entries with their predecessors.
_LEDGER = """
WITH entries AS (
    SELECT account_id, sum(amount) AS total, count(*) AS number FROM credits_entry GROUP BY account_id
), holds AS (
    SELECT account_id, sum(amount) AS total, count(*) AS number FROM credits_hold
    WHERE status = 'HELD' GROUP BY account_id
), chained AS (
    SELECT balance_before - coalesce(lag(balance_after) OVER of_account, 0) AS jump
    FROM credits_entry WINDOW of_account AS (PARTITION BY account_id ORDER BY account_version)
)
SELECT (SELECT coalesce(sum(
            abs(account.balance - coalesce(entries.total, 0)) + abs(account.version - coalesce(entries.number, 0))
            + abs(account.held - coalesce(holds.total, 0)) + abs(account.open_holds - coalesce(holds.number, 0))
        ), 0)
        FROM credits_account AS account
        LEFT JOIN entries ON entries.account_id = account.id
        LEFT JOIN holds ON holds.account_id = account.id)
     + (SELECT coalesce(sum(abs(jump)), 0) FROM chained) AS difference
"""

_LONGEST_HOLD = """
SELECT extract(epoch FROM max(coalesce(closed_at, now()) - created_at)) AS seconds
FROM credits_hold WHERE coalesce(closed_at, now()) >= to_timestamp(%s)
"""

# Compares the credits of each postback with the product of its factors.
_POSTBACKS = """
SELECT postback.external_id AS name, coalesce(entry.amount, 0) AS given,
       floor(postback.amount * postback.rate * (1 + postback.badge_bonus + postback.modifier_bonus)) AS worth
FROM earnings_postback AS postback LEFT JOIN credits_entry AS entry ON entry.id = postback.entry_id
WHERE postback.external_id = ANY(%s) AND postback.kind = 'CREDIT'
"""

_PAYOUTS = """
SELECT payout.stripe_invoice_id AS name, entry.amount AS given, payout.credits AS worth
FROM payments_payout AS payout JOIN credits_entry AS entry ON entry.id = payout.entry_id
"""

_ORPHANS = """
SELECT count(*) AS number FROM credits_entry AS entry
WHERE source IN ('SUBSCRIBED_PAYOUT', 'CREDIT_PURCHASE', 'PUSH_ADS', 'VIDEO_ADS', 'OFFERWALL', 'SURVEYS')
  AND NOT EXISTS (SELECT FROM earnings_postback AS postback WHERE postback.entry_id = entry.id)
  AND NOT EXISTS (SELECT FROM payments_payout AS payout WHERE payout.entry_id = entry.id)
"""
