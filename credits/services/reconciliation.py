"""
Reconciliation recomputes the ledger from its rows, and stores the findings of each comparison.

CHECK and unique constraints are not verified again: they hold even for a superuser who disables triggers and foreign
keys. Rules across rows are verified here, in one statement and therefore in one snapshot, while the service runs. Other
apps add rules to that statement; `relay` and `payments` pass their own comparisons to `run`.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from django.db import connection, transaction
from django.db.models.functions import Greatest, Now

from credits.models import CreditAccount, CreditEntry, CreditHold, ReconciliationRun
from gateway.common import sequences
from gateway.common.leases import try_lease
from gateway.common.statements import Statements

logger = logging.getLogger(__name__)
# More findings would add no information, and the row stays readable.
MAX_STORED_FINDINGS = 1000

# Further rules by name: SELECTs of rule, account, row, expected and actual value, like those above.
_further_rules: dict[str, str] = {}


class _Sql(Statements, file=__file__):
    find_differences: str


def add_rules(name: str, sql: str) -> None:
    """Register another package's rules, to be verified in the ledger's snapshot."""
    _further_rules[name] = sql


class Finding(NamedTuple):
    """A rule that a row breaks: the expected value, in credits or versions, and the row's value."""

    rule: str
    account_id: int
    row_id: int
    expected: int
    actual: int | None


class Counts(NamedTuple):
    accounts: int
    entries: int
    holds: int


def find_differences() -> list[Finding]:
    """Return every difference between the ledger's totals and its rows, by account."""
    rules = "\nUNION ALL\n".join([_Sql.find_differences, *_further_rules.values()])
    return [
        Finding(rule, account_id, row_id, int(expected), None if stored is None else int(stored))
        for rule, account_id, row_id, expected, stored in read_all(f"{rules}\nORDER BY 2, 3, 1")
    ]


def read_all(statement: str) -> list[tuple[Any, ...]]:
    """Execute a statement that reads the whole ledger, which takes longer than requests may."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL statement_timeout = '30min'")
        cursor.execute(statement)
        rows: list[tuple[Any, ...]] = cursor.fetchall()
    return rows


def count_rows() -> Counts:
    return Counts(CreditAccount.objects.count(), CreditEntry.objects.count(), CreditHold.objects.count())


class Comparison(NamedTuple):
    """The counts and findings of a comparison, as a run stores them."""

    counts: Mapping[str, int]
    findings: Sequence[Mapping[str, Any]]


def run(
    *, kind: ReconciliationRun.Kind, compare: Callable[[], Comparison], now: datetime
) -> ReconciliationRun | None:
    """
    Run the comparison and store its findings; None if another run of the kind is in progress.

    If `compare` raises, the stored run stays unfinished.
    """
    with try_lease(f"reconciliation.{kind}") as acquired:
        if not acquired:
            return None
        row = ReconciliationRun.objects.create(kind=kind, started_at=now)
        counts, findings = compare()
        row.counts = {**counts, "findings": len(findings)}
        row.findings = list(findings[:MAX_STORED_FINDINGS])
        row.save(update_fields=["counts", "findings"])
        # Use the database's clock, since `now` may come from another clock and the run's duration is measured.
        ReconciliationRun.objects.filter(pk=row.pk).update(finished_at=Greatest(Now(), "started_at"))
        row.refresh_from_db(fields=["finished_at"])
        return row


class BooksDiffer(Exception):
    """A comparison has findings. Raised so that its task fails; nothing catches it."""


def require_no_findings(row: ReconciliationRun | None) -> None:
    """
    Fail if a run has findings; None means that another run is in progress.

    Raises:
        BooksDiffer: the run has findings.
    """
    if row is not None and row.counts["findings"]:
        raise BooksDiffer(f"{row.counts['findings']} differences, run {row.pk}")


def reconcile(*, now: datetime) -> ReconciliationRun | None:
    """Recompute the ledger from its rows, store and log the differences; None if a run is in progress."""
    return run(kind=ReconciliationRun.Kind.LEDGER, compare=_compare, now=now)


def _compare() -> Comparison:
    findings = find_differences()
    for finding in findings:
        logger.error("ledger reconciliation: %s", finding)
    rows: list[dict[str, Any]] = [
        {
            "rule": finding.rule,
            "have": "" if finding.actual is None else str(finding.actual),
            "wanted": str(finding.expected),
            "ids": {"account": str(finding.account_id), "row": str(finding.row_id)},
        }
        for finding in findings
    ]
    # Rows are missing from the books if none can be added.
    for table in sequences.tables_behind():
        logger.error("ledger reconciliation: the sequence of %s is behind its ids", table)
        rows.append(
            {
                "rule": "a table's sequence is ahead of its ids",
                "have": "",
                "wanted": "",
                "ids": {"table": table},
            }
        )
    return Comparison(count_rows()._asdict(), rows)
