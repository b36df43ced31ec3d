"""Billing periods, counted from the anchor so that a short month never shortens the months after it."""

import calendar
from datetime import UTC, datetime, timedelta

_DAYS = {"day": 1, "week": 7}
_MONTHS = {"month": 1, "year": 12}


def boundary(anchor: int, interval: str, count: int, number: int) -> int:
    """Return where period `number` begins; periods are numbered from 0 at the anchor."""
    start = datetime.fromtimestamp(anchor, UTC)
    if interval in _DAYS:
        return int((start + timedelta(days=_DAYS[interval] * count * number)).timestamp())
    return int(_add_months(start, _MONTHS[interval] * count * number).timestamp())


def _add_months(start: datetime, months: int) -> datetime:
    years, month = divmod(start.month - 1 + months, 12)
    year = start.year + years
    last_day = calendar.monthrange(year, month + 1)[1]
    return start.replace(year=year, month=month + 1, day=min(start.day, last_day))
