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
    Count refusals, each of a sponsor's slug by a rule, in one statement outside of any transaction.

    They are figures only: an error is logged, and the caller's answer stays as it is. Unknown sponsors count nowhere.
    """
    counted = Counter(refusals)
    if not counted:
        return
    rows = [{"slug": slug, "rule": rule, "requests": number} for (slug, rule), number in counted.items()]
    try:
        db.all_rows(_COUNT, {"rows": json.dumps(rows), "day": now.astimezone(UTC).date()})
    except DatabaseError:
        logger.warning("refusals of sponsors could not be counted", exc_info=True)


# In the order of the key, so that two batches wait for each other in one order.
_COUNT = """
INSERT INTO sponsors_refusalcount AS counted (sponsor_id, day, rule, requests)
SELECT sponsor.id, %(day)s, refused.rule, refused.requests
FROM jsonb_to_recordset(%(rows)s::jsonb) AS refused (slug text, rule text, requests bigint)
JOIN sponsors_sponsor AS sponsor ON sponsor.slug = refused.slug
ORDER BY sponsor.id, refused.rule
ON CONFLICT (sponsor_id, day, rule) DO UPDATE SET requests = counted.requests + excluded.requests
RETURNING counted.id
"""
