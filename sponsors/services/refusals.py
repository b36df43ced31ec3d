"""Counts, by sponsor, rule and day, of requests that a sponsor did not pay for."""

import json
import logging
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime

from django.db import DatabaseError

from gateway.common import db

logger = logging.getLogger(__name__)


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
        db.all_rows(_COUNT, {"rows": json.dumps(rows), "day": now.astimezone(UTC).date()})
    except DatabaseError:
        logger.warning("refusals of sponsors could not be counted", exc_info=True)


# Sorted by the key, so that two batches lock rows in the same order and cannot deadlock.
_COUNT = """
INSERT INTO sponsors_refusalcount AS counted (sponsor_id, day, rule, requests)
SELECT sponsor.id, %(day)s, refused.rule, refused.requests
FROM jsonb_to_recordset(%(rows)s::jsonb) AS refused (slug text, rule text, requests bigint)
JOIN sponsors_sponsor AS sponsor ON sponsor.slug = refused.slug
ORDER BY sponsor.id, refused.rule
ON CONFLICT (sponsor_id, day, rule) DO UPDATE SET requests = counted.requests + excluded.requests
RETURNING counted.id
"""
