"""Reads relay transactions for their owners: status, credits and cost."""

from collections.abc import Set
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any, NamedTuple, Protocol, cast
from uuid import UUID

from django.db.models import F, QuerySet

from gateway.common import db
from gateway.common.statements import Statements
from relay.errors import TransactionNotFound
from relay.models import SQL, RelayTransaction
from users.models import User
from users.queries import SESSION_STATE, require_active_state


@dataclass(frozen=True, slots=True)
class TransactionReport:
    """The status record of a relay transaction. Costs and balances are in credits."""

    id: int
    status: str
    sender_address: str
    credits_used: int
    credits_before: int
    credits_after: int
    # Why the call ended without success: a code, and a sentence for its owner; empty in progress and after success.
    failure_code: str = ""
    failure_detail: str = ""
    # The name of the sponsor that pays for all or part of the call; empty if the user pays alone.
    sponsor: str = ""
    chain_id: int = 0

    @property
    def is_in_progress(self) -> bool:
        """Whether the call is not settled yet."""
        return self.status in RelayTransaction.IN_PROGRESS


def transaction_report(
    *, user_id: int, session_id: UUID | None, transaction_hash: str, now: datetime
) -> TransactionReport:
    """
    Report on the user's relay transaction, on any chain, that has an attempt with this hash, in one statement.

    Until it is settled, the credits are the expected cost and the balance at
    acceptance; afterwards they come from the ledger entry.

    Raises:
        SessionEnded, AccountInactive: the session or the account has ended.
        TransactionNotFound: the user has no transaction with this hash.
    """
    params = {
        "user": user_id,
        "session": session_id,
        "now": now,
        "hash": transaction_hash.lower(),
    }
    state, *columns = db.only_row(_Sql.report, params)
    require_active_state(state)
    if columns[0] is None:
        raise TransactionNotFound(
            "The signed-in profile has no relay transaction with this hash. Send a hash that execute returned to it."
        )
    return _report_of(*columns)


def _report_of(
    row_id: int,
    status: str,
    sender: str,
    code: str,
    detail: str,
    expected_cost: int,
    before: int,
    chain_id: int,
    sponsor: str | None,
    *entry: Any,
) -> TransactionReport:
    posted = None if entry[0] is None else tuple(entry)
    used, before, after = _credits_of(status, expected_cost, before, posted)
    # The row of a call that is being cancelled already has a reason, but the call may still succeed.
    failure = ("", "") if status in RelayTransaction.IN_PROGRESS else (code, _FAILURES.get(code, detail))
    return TransactionReport(row_id, status, sender, used, before, after, *failure, sponsor or "", chain_id)


# For these codes the stored detail is for staff only: it quotes a node, or names our accounts.
_FAILURES = {
    "refused-by-node": "The network did not take the transaction. Nothing was charged; send the call again.",
    "account-nonce-lost": "A fault of the service stopped the transaction. Nothing was charged; send the call again.",
}


def changed_reports(shown: Set[tuple[int, str]]) -> dict[tuple[int, str], TransactionReport]:
    """Return reports on those of the shown relay transactions whose status has changed since."""
    # Arrays are passed as text: the driver takes longer to adapt a list than PostgreSQL takes to run the statement.
    ids, statuses = ("{" + ",".join(map(str, column)) + "}" for column in zip(*shown, strict=True))
    rows = db.all_rows(_Sql.changed, {"ids": ids, "statuses": statuses})
    return {(row[1], row[0]): _report_of(*row[1:]) for row in rows}


class _Sql(Statements, file=__file__, shared=SQL, session_state=SESSION_STATE):
    report: str
    changed: str
    typical_cost: str
    spent_by_day: str


class ListedTransaction(Protocol):
    """A row of `transactions_of`."""

    id: int
    chain_id: int
    profile_address: str
    transaction_hash: str
    status: str
    expected_cost: int
    real_cost: int
    credits_before: int
    created_at: datetime
    settled_at: datetime | None
    failure_code: str
    # The amount of the ledger entry; None before the entry is posted.
    amount: int | None
    balance_before: int | None
    balance_after: int | None
    # The name of the sponsor that pays for all or part of the call.
    sponsor: str | None


def transactions_of(user: User) -> QuerySet[RelayTransaction, ListedTransaction]:
    """
    Return the user's relay transactions, each with the columns of its ledger entry that `credits_of` reads.

    The rows are named tuples without the long columns; model instances would need three objects for each transaction.
    """
    shown = (
        "id",
        "chain_id",
        "profile_address",
        "transaction_hash",
        "status",
        "created_at",
        "settled_at",
        "failure_code",
    )
    costs = ("expected_cost", "real_cost", "credits_before")
    entry = {name: F(f"hold__entry__{name}") for name in ("amount", "balance_before", "balance_after")}
    entry["sponsor"] = F("hold__sponsored__version__policy__sponsor__slug")
    transactions = RelayTransaction.objects.filter(user_id=user.pk).annotate(**entry)
    return cast(
        "QuerySet[RelayTransaction, ListedTransaction]",
        transactions.values_list(*shown, *costs, *entry, named=True),
    )


def credits_of(row: ListedTransaction) -> tuple[int, int, int]:
    """Return the credits that a transaction uses, and the balance before and after it."""
    posted = None
    if row.amount is not None and row.balance_before is not None and row.balance_after is not None:
        posted = row.amount, row.balance_before, row.balance_after
    return _credits_of(row.status, row.expected_cost, row.credits_before, posted)


def _credits_of(
    status: str, expected_cost: int, credits_before: int, entry: tuple[int, int, int] | None
) -> tuple[int, int, int]:
    """Return credits used, balance before and after; `entry` is the posted ledger entry, if any."""
    if entry is not None:
        amount, before, after = entry
        return -amount, before, after
    used = expected_cost if status in RelayTransaction.IN_PROGRESS else 0
    return used, credits_before, credits_before - used


class Spending(NamedTuple):
    """The typical cost of a call, and this user's spending on each UTC day with calls."""

    # The median cost, in credits, of the successful calls among the newest ones of all users; None if there are none.
    typical_cost: int | None
    days: list[tuple[date, int]]


# Enough calls for a median, and for one user's month. Reading more would make the page slow.
_TYPICAL_CALLS, _CALLS_OF_USER, SPENDING_DAYS = 200, 5_000, 30


def spending_of(*, user: User, now: datetime) -> Spending:
    """Return the typical cost of a call, and the daily cost of the user's calls of the last month; two statements."""
    typical = db.only_row(_Sql.typical_cost, {"calls": _TYPICAL_CALLS})[0]
    since = now - timedelta(days=SPENDING_DAYS - 1)
    params = {"user": user.pk, "since": since.astimezone(UTC).date(), "calls": _CALLS_OF_USER}
    return Spending(None if typical is None else round(typical), db.all_rows(_Sql.spent_by_day, params))
