"""Checks of the journey, and its amounts and months."""

import secrets
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import NamedTuple

from stripe_double.billing.renewals import add_months

_PAUSE_SECONDS = 0.1


class Mismatch(AssertionError):
    """The service contradicts the chain, the payment provider, its contract or itself."""


def expect(what: str, actual: object, expected: object) -> None:
    """Raise `Mismatch` unless both are equal."""
    if actual != expected:
        raise Mismatch(f"{what} is {actual!r}, not {expected!r}")


def until(what: str, read: Callable[[], object], expected: object, *, patience: float) -> None:
    """Poll until the value is as expected; raise `Mismatch` after `patience` seconds."""
    deadline = time.monotonic() + patience
    while (actual := read()) != expected:
        if time.monotonic() > deadline:
            raise Mismatch(f"{what} is {actual!r} even after {patience:.0f} s, not {expected!r}")
        time.sleep(_PAUSE_SECONDS)


class Period(NamedTuple):
    """A month of a subscription, in seconds since 1970."""

    start: int
    end: int

    def __str__(self) -> str:
        return f"{text_of(self.start)} to {text_of(self.end)}"


def some_amount(*, other_than: int = 0) -> int:
    """Return a monthly amount in minor units at random."""
    amount = 500 + secrets.randbelow(9_500)
    return amount if amount != other_than else some_amount(other_than=other_than)


def months_before(moment: int, months: int) -> int:
    """Return the latest time to which this many months can be added without passing `moment`."""
    return int(add_months(datetime.fromtimestamp(moment, UTC), -months).timestamp())


def text_of(moment: int) -> str:
    """Return a time as text."""
    return f"{datetime.fromtimestamp(moment, UTC):%Y-%m-%d %H:%M:%S}"
