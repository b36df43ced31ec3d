"""The state of a stack's database and chain after a round: settled calls, and reconciliation."""

from dataclasses import dataclass
from typing import Any

import psycopg

from lab.bench.stack import Stack

_SETTLED = "SELECT count(*) FROM relay_relaytransaction WHERE id > %s AND settled_at IS NOT NULL"
_NEWEST = "SELECT coalesce(max(id), 0) FROM relay_relaytransaction"
_OF_ROUND = """
SELECT count(*), count(*) FILTER (WHERE status = 'Success'), count(*) FILTER (WHERE settled_at IS NULL),
       coalesce(sum(real_cost), 0), extract(epoch FROM max(settled_at) - min(created_at))
FROM relay_relaytransaction WHERE id > %(newest)s AND (key_manager_address = %(factory)s) = %(is_creation)s
"""
_CHARGED = """
SELECT count(*), coalesce(-sum(entry.amount), 0), count(DISTINCT hold.id)
FROM relay_relaytransaction AS call
JOIN credits_hold AS hold ON hold.id = call.hold_id AND hold.status = 'CAPTURED'
JOIN credits_entry AS entry ON entry.id = hold.entry_id AND entry.source = 'RELAY_TRANSACTION'
WHERE call.id > %(newest)s AND (key_manager_address = %(factory)s) = %(is_creation)s
"""
_CHARGED_TO_SPONSORS = """
SELECT count(*), coalesce(-sum(entry.amount), 0), count(DISTINCT hold.id)
FROM relay_relaytransaction AS call
JOIN sponsors_sponsoredcall AS sponsored ON sponsored.hold_id = call.hold_id
JOIN credits_hold AS hold ON hold.id = sponsored.sponsor_hold_id AND hold.status = 'CAPTURED'
JOIN credits_entry AS entry ON entry.id = hold.entry_id AND entry.source = 'RELAY_TRANSACTION'
WHERE call.id > %(newest)s AND (key_manager_address = %(factory)s) = %(is_creation)s
"""
_WRONG_ACCOUNTS = """
SELECT count(*) FROM credits_account AS account
LEFT JOIN (SELECT account_id, sum(amount) AS total, count(*) AS entries FROM credits_entry GROUP BY 1) AS posted
       ON posted.account_id = account.id
LEFT JOIN (SELECT account_id, sum(amount) AS total FROM credits_hold WHERE status = 'HELD' GROUP BY 1) AS held
       ON held.account_id = account.id
WHERE account.balance <> coalesce(posted.total, 0) OR account.version <> coalesce(posted.entries, 0)
   OR account.held <> coalesce(held.total, 0)
"""
_HASHES = "SELECT transaction_hash FROM relay_relaytransaction WHERE id > %s AND status = 'Success'"
_SETTLED_HASHES = """
SELECT transaction_hash FROM relay_relaytransaction WHERE status = 'Success' AND profile_address = %s
ORDER BY id LIMIT %s
"""
_CALLS_SINCE = """
SELECT transaction_hash, profile_address FROM relay_relaytransaction WHERE id > %s ORDER BY id LIMIT %s
"""
# In one process, whose start takes longer than both comparisons of a short round.
_COMPARE = """
from django.core.management import CommandError, call_command
differences = []
for name in ("reconcile_credits", "reconcile_relay"):
    try:
        call_command(name)
    except CommandError as error:
        differences.append(f"{name}: {error}")
if differences:
    raise CommandError("; ".join(differences))
"""
_BATCH = 200
# New profiles are calls of the LSP-23 factory, not of a key manager.
_FACTORY = "0x2300000A84D25dF63081feAa37ba6b62C4c89a30"


@dataclass(frozen=True)
class Outcome:
    """The results of a round's calls; `wrong` lists every difference."""

    calls: int
    seconds: float
    wrong: list[str]


class Records:
    """A stack's chain, and one connection to its database, which the meter does not count."""

    def __init__(self, stack: Stack) -> None:
        self._stack = stack
        self._connection = psycopg.connect(stack.database_url, autocommit=True)
        stack.meter.ignored.add(self._connection.info.backend_pid)

    def close(self) -> None:
        """End the connection."""
        self._connection.close()

    def analyze(self) -> None:
        """
        Run ANALYZE, as autovacuum does once a minute on tables that grow.

        Otherwise sessions keep query plans made for few rows, and rounds would measure different plans.
        """
        self._connection.execute("ANALYZE")

    def newest(self) -> int:
        """Return the id of the newest call."""
        return int(self._row(_NEWEST)[0])

    def settled_since(self, newest: int) -> int:
        """Count the calls after `newest` that have ended, by an index-only scan of the primary key."""
        return int(self._row(_SETTLED, [newest])[0])

    def settled_hashes(self, profile: str, number: int) -> list[str]:
        """Return the transaction hashes of some settled calls of a profile."""
        rows = self._connection.execute(_SETTLED_HASHES, (profile, number)).fetchall()
        return [row[0] for row in rows]

    def calls_since(self, newest: int, number: int) -> list[tuple[str, str]]:
        """Return hash and profile of the first calls after `newest`."""
        return self._connection.execute(_CALLS_SINCE, (newest, number)).fetchall()

    def outcome_since(
        self, newest: int, *, accepted: int, is_sponsored: bool = False, is_creation: bool = False
    ) -> Outcome:
        """
        Reconcile responses, rows, ledger and chain, by SQL and by the service's own commands.

        It counts either the calls or the creations of profiles, which a sponsor pays.
        """
        which = {"newest": newest, "factory": _FACTORY, "is_creation": is_creation}
        calls, successes, unsettled, cost, seconds = self._row(_OF_ROUND, which)
        charges = _CHARGED_TO_SPONSORS if is_sponsored or is_creation else _CHARGED
        entries, charged, holds = self._row(charges, which)
        differences = {
            "accepted calls without a row, or rows without an accepted call": calls - accepted,
            "calls that did not succeed": calls - successes,
            "calls that are not settled": unsettled,
            "calls without exactly one entry": max(abs(calls - entries), abs(calls - holds)),
            "credits by which costs and entries differ": int(cost - charged),
            "accounts whose balance differs from the sum of their entries": self._row(_WRONG_ACCOUNTS)[0],
            "calls without a successful receipt": self._without_receipt(newest),
        }
        wrong = [f"{name}: {number}" for name, number in differences.items() if number]
        wrong += self._findings()
        return Outcome(int(calls), float(seconds or 0), wrong)

    def _without_receipt(self, newest: int) -> int:
        hashes = [row[0] for row in self._connection.execute(_HASHES, (newest,)).fetchall()]
        missing = len(hashes) - len(set(hashes))
        for start in range(0, len(hashes), _BATCH):
            calls = [("eth_getTransactionReceipt", name) for name in hashes[start : start + _BATCH]]
            receipts = self._stack.rpc.batch(calls)
            missing += sum(receipt is None or receipt["status"] != "0x1" for receipt in receipts)
        return missing

    def _findings(self) -> list[str]:
        outcome = self._stack.manage("shell", "-c", _COMPARE)
        return [(outcome.stdout + outcome.stderr).strip()[-800:]] if outcome.returncode else []

    def _row(self, question: str, values: Any = None) -> tuple[Any, ...]:
        row = self._connection.execute(question, values).fetchone()
        if row is None:
            raise RuntimeError("the query returned no row")
        return row
