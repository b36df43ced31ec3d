"""
Compares every entry with the row that caused it, in both directions.

Whoever may write rows can post an entry that fits the account. It does not fit the row that its source names: a
request, an earning, a check-in, a charged hold, a payout. Each app registers the entries that its rows have caused,
and further rules about those rows, and all are read in one statement and therefore in one snapshot.
"""

import json
import logging
from datetime import datetime
from typing import Any

from credits.models import ReconciliationRun
from credits.services.reconciliation import Comparison, count_rows, read_all, run
from gateway.common.statements import Statements, fill
from gateway.staff import approvals

logger = logging.getLogger(__name__)


class _Sql(Statements, file=__file__, carried_out=approvals.Sql.carried_out):
    find_differences: str
    caused: str
    adjustment_rules: str


_caused: dict[str, str] = {"credits": _Sql.caused}
_rules: dict[str, str] = {"credits": _Sql.adjustment_rules}


def register(name: str, *, caused: str = "", rules: str = "") -> None:
    """
    Register what a package knows about causes.

    `caused` selects source, key, account and amount of the entries that its rows must have caused; `rules` selects
    broken rules, as `find_differences` does.
    """
    if caused:
        _caused[name] = caused
    if rules:
        _rules[name] = rules


def find_differences() -> list[dict[str, Any]]:
    """Return entries without cause, causes without entry, and broken rules, as a run stores them."""
    parts = {"caused": _caused, "rules": _rules}
    texts = {
        name: " UNION ALL ".join(f"({select})" for select in selects.values())
        for name, selects in parts.items()
    }
    return [
        {"rule": rule, "have": have, "wanted": wanted, "ids": json.loads(ids)}
        for rule, have, wanted, ids in read_all(fill(_Sql.find_differences, texts))
    ]


def reconcile(*, now: datetime) -> ReconciliationRun | None:
    """Compare entries with causes, store and log the differences; None if a run is in progress."""
    return run(kind=ReconciliationRun.Kind.CAUSES, compare=_compare, now=now)


def _compare() -> Comparison:
    findings = find_differences()
    for finding in findings:
        logger.error("entries against causes: %s", finding)
    return Comparison({"entries": count_rows().entries}, findings)
