"""
Compares every entry with the row that caused it, in both directions.

Whoever may write rows can post an entry that fits the account. It does not fit the row that its source names: a
request, an earning, a check-in, a charged hold, a payout. Each app registers the entries that its rows have caused,
and further rules about those rows, and all are read in one statement and therefore in one snapshot.
"""

import json
import logging
from collections.abc import Callable, Iterable
from datetime import datetime
from itertools import chain
from typing import Any

from credits.models import ReconciliationRun
from credits.services.reconciliation import Comparison, count_rows, read_all, run
from gateway.common.statements import Statements, fill
from gateway.staff import approvals

logger = logging.getLogger(__name__)
Finding = dict[str, Any]
Further = Callable[[datetime], Iterable[Finding]]


class _Sql(Statements, file=__file__, carried_out=approvals.Sql.carried_out):
    find_differences: str
    caused: str
    adjustment_rules: str


_caused: dict[str, str] = {"credits": _Sql.caused}
_further: dict[str, Further] = {}
_rules: dict[str, str] = {"credits": _Sql.adjustment_rules}


def register(name: str, *, caused: str = "", rules: str = "", further: Further | None = None) -> None:
    """
    Register what a package knows about causes.

    `caused` selects source, key, account and amount of the entries that its rows must have caused; `rules` selects
    broken rules, as `find_differences` does; `further` yields findings that SQL cannot compute.
    """
    if caused:
        _caused[name] = caused
    if rules:
        _rules[name] = rules
    if further:
        _further[name] = further


def find_differences() -> list[Finding]:
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
    return run(kind=ReconciliationRun.Kind.CAUSES, compare=lambda: _compare(now), now=now)


def _compare(now: datetime) -> Comparison:
    findings = [*find_differences(), *chain.from_iterable(further(now) for further in _further.values())]
    for finding in findings:
        logger.error("entries against causes: %s", finding)
    return Comparison({"entries": count_rows().entries}, findings)
