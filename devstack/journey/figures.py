"""Amounts, months and times, as the journey chooses and shows them."""

import calendar
import secrets
from datetime import UTC, datetime
from typing import NamedTuple


class Period(NamedTuple):
    """A month of a subscription, in seconds since 1970."""

    start: int
    end: int

    def __str__(self) -> str:
        return f"{text_of(self.start)} to {text_of(self.end)}"


def some_amount(*, other_than: int = 0) -> int:
    """Return a monthly amount in minor units that nobody can know beforehand."""
    amount = 500 + secrets.randbelow(9_500)
    return amount if amount != other_than else some_amount(other_than=other_than)


def months_before(moment: int, months: int) -> int:
    """Return the latest moment to which so many months can be added without passing `moment`."""
    there = datetime.fromtimestamp(moment, UTC)
    years, month = divmod(there.year * 12 + there.month - 1 - months, 12)
    day = min(there.day, calendar.monthrange(years, month + 1)[1])
    return int(there.replace(year=years, month=month + 1, day=day).timestamp())


def text_of(moment: int) -> str:
    """Return a time as people write it."""
    return f"{datetime.fromtimestamp(moment, UTC):%Y-%m-%d %H:%M:%S}"
