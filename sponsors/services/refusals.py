"""Counts, by sponsor, rule and day, of requests that a sponsor did not pay for."""

import json
import logging
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime

from django.db import DatabaseError

from gateway.common import db
from gateway.common.statements import Statements

logger = logging.getLogger(__name__)


class _Sql(Statements, file=__file__):
    count: str


def count(refusals: Iterable[tuple[str, str]], *, now: datetime) -> None:
    """
    Count refusals, given as pairs of a sponsor's slug and a rule; one statement, outside any transaction.

    The counts are only statistics, so an error is logged and not raised. Refusals of unknown sponsors are not counted.
    """
    counted = Counter(refusals)
    if not counted:
        return
    rows = [{"slug": slug, "rule": rule, "requests": number} for (slug, rule), number in counted.items()]
    try:
        db.all_rows(_Sql.count, {"rows": json.dumps(rows), "day": now.astimezone(UTC).date()})
    except DatabaseError:
        logger.warning("refusals of sponsors could not be counted", exc_info=True)
